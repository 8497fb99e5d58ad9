"""Effective cutoffs: what a model's scores of monthly document versions say about the versions that it knows.

From the bottom up: ``differences`` and ``random_streams`` are shared arithmetic; ``curves``, ``panel_with_reference``,
``panel_without_reference``, ``rise`` and ``topic`` are the estimators; ``reference`` is the n-gram reference;
``score_matrices`` makes matrices of rows, ``estimates`` says which estimator applies, ``rows`` makes the records of
the result tables; ``plausible`` refuses impossible scores; ``planted`` and ``simulation`` are worlds with a known
cutoff; ``figures`` draws. Scoring itself is ``strandline.scoring``.
"""
