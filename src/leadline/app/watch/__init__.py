"""Standing watch: the verdict on a live window, while it moves on.

Here: the window that holds the last samples, the judge that asks rules where samples came, what lasts longer than it.
Elsewhere: the verdict on a recording (diagnose); what samples live sources (collectors); what keeps samples (stores).
"""
