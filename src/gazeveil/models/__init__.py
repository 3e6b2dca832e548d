"""Networks: torch, an optional extra (`pip install 'gazeveil[deep]'`), imported only when a network
is built or used.
"""
