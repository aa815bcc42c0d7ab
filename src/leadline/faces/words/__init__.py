"""Every sentence that a person reads of a verdict, made from its values; nothing else makes one.

Here: answers, causes, layers, incidents, the account, groups of findings.
Elsewhere: what is decided (app/diagnose); where a sentence stands on a screen or a page (the faces).
"""
