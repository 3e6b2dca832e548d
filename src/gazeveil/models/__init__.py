"""Models that learn: classifiers of rows (scikit-learn), and networks (torch, an optional extra,
`pip install 'gazeveil[deep]'`); both are imported only when a model is built.
"""
