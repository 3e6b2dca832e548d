"""The interactive page: people, a mechanism and its parameter on one side, what is released and
what a quick attacker still finds on the other.

`gazeveil explore` serves it to the browser of this machine; :func:`gazeveil.explore.server.save`
writes it as one file. Both are the same page.
"""
