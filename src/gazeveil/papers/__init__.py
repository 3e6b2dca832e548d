"""The papers' own figures and tables, drawn and compared from
:class:`~gazeveil.evaluation.results.Results`; one module per paper.

A paper's module says for every published figure which cell of a study answers it (`ask`), which
orders the paper claims (`orders`), and draws the paper's pictures with ours and the published
values side by side (`draw`).
"""
