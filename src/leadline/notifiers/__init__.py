"""One file per kind of receiver that notices of the standing watch are sent to.

Here: the form a receiver wants, its connection, and what its answers mean.
Elsewhere: what is due, tried again and limited (stores/notices); who is notified of what (app/watch).
"""
