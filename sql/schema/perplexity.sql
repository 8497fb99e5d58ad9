-- Scores of texts under models, curves and effective cutoffs.

create schema if not exists perplexity;

create table perplexity.scores (
    model text not null,
    text_sha256 text not null,
    max_tokens integer not null,
    n_tokens integer,
    mean_nll double,
    perplexity double,
    status text not null,
    reason text,
    dtype text not null,
    computed_in text,
    prefix_token integer,
    is_context_limited boolean,
    tokens_computed integer,
    tokens_saved integer,
    batch_tokens integer,
    method text,
    device text,
    token_digest text,
    tokenizer_digest text,
    revision text,
    weights_digest text,
    quantisation text,
    library_versions text,
    scorer_version text not null,
    primary key (model, text_sha256, max_tokens, dtype),
    check (isfinite(mean_nll)),
    check (isfinite(perplexity)),
    check (n_tokens >= 0),
    check (tokens_computed >= 0 and tokens_saved >= 0),
    check ((status = 'ok') = (mean_nll is not null)),
    check (abs(ln(perplexity) - mean_nll) < 1e-6),
    check (status = 'ok' or reason is not null)
);
comment on table perplexity.scores is 'a distinct text scored by a model';
comment on column perplexity.scores.model is 'the model, as users write it';
comment on column perplexity.scores.text_sha256 is 'the text';
comment on column perplexity.scores.max_tokens is 'limit in force';
comment on column perplexity.scores.n_tokens is 'tokens scored';
comment on column perplexity.scores.mean_nll is 'mean negative log-likelihood a token, nats';
comment on column perplexity.scores.perplexity is 'exp(mean_nll)';
comment on column perplexity.scores.status is 'ok, too_short, nonfinite or impossible';
comment on column perplexity.scores.reason is 'one plain sentence when the status is not ok';
comment on column perplexity.scores.dtype is 'number format of the weights';
comment on column perplexity.scores.computed_in is 'number format of the computation: float32 where half precision was not finite';
comment on column perplexity.scores.prefix_token is 'id of the BOS before the text, NULL if none';
comment on column perplexity.scores.is_context_limited is 'whether the model''s context ended the input before max_tokens did';
comment on column perplexity.scores.tokens_computed is 'input tokens computed for this text';
comment on column perplexity.scores.tokens_saved is 'input tokens that another text had computed before: a shared prefix';
comment on column perplexity.scores.batch_tokens is 'tokens in one forward pass';
comment on column perplexity.scores.method is 'tree, batch, single, or remote';
comment on column perplexity.scores.device is 'where it was computed';
comment on column perplexity.scores.token_digest is 'digest of the token ids, so that another tokenization is seen';
comment on column perplexity.scores.tokenizer_digest is 'sha256 of the tokenizer';
comment on column perplexity.scores.revision is 'revision of the model, or the beginning of its digest';
comment on column perplexity.scores.weights_digest is 'which weights: by content, pinned revision or address, and the context where the model''s entry shortens it';
comment on column perplexity.scores.quantisation is 'how the weights were stored, if they were expanded';
comment on column perplexity.scores.library_versions is 'versions of torch, transformers and tokenizers';
comment on column perplexity.scores.scorer_version is 'version of the scoring code';

create table perplexity.monthly_curves (
    model text not null,
    resource text not null,
    month date not null,
    n_documents integer not null,
    n_excluded integer not null,
    mean_perplexity double,
    relative_perplexity double,
    low95 double,
    high95 double,
    status text,
    reason text,
    dtype text,
    max_tokens integer,
    context_tokens integer,
    complete_cases boolean,
    primary key (model, resource, month),
    check (n_documents >= 0),
    check (n_excluded >= 0),
    check (relative_perplexity between 0 and 1),
    check (high95 >= low95),
    check (status is null or (status = 'ok') = (relative_perplexity is not null)),
    check (status is null or (status = 'ok') = (reason is null))
);
comment on table perplexity.monthly_curves is 'a point of a curve';
comment on column perplexity.monthly_curves.model is 'the model, as users write it';
comment on column perplexity.monthly_curves.resource is 'name of the resource';
comment on column perplexity.monthly_curves.month is 'first day of the month';
comment on column perplexity.monthly_curves.n_documents is 'documents averaged';
comment on column perplexity.monthly_curves.n_excluded is 'documents left out: no text, no score, or a topic that lacks another month';
comment on column perplexity.monthly_curves.mean_perplexity is 'mean of perplexities after cutting 2.5 % from each tail';
comment on column perplexity.monthly_curves.relative_perplexity is 'min-max over months; NULL where the range is zero';
comment on column perplexity.monthly_curves.low95 is 'lower end of the band of the relative curve; may be below 0';
comment on column perplexity.monthly_curves.high95 is 'upper end of the band of the relative curve; may be above 1';
comment on column perplexity.monthly_curves.status is 'ok; empty month; constant curve; missing: no month of the resource has a value';
comment on column perplexity.monthly_curves.reason is 'one plain sentence when there is no relative value';
comment on column perplexity.monthly_curves.dtype is 'number format of the scores';
comment on column perplexity.monthly_curves.max_tokens is 'tokens asked for of each text';
comment on column perplexity.monthly_curves.context_tokens is 'tokens scored at most, where the model''s context ended before max_tokens did';
comment on column perplexity.monthly_curves.complete_cases is 'panels: whether topics that lack any month were left out';

create table perplexity.reference_tests (
    model text not null,
    resource text not null,
    reference text not null,
    rank integer not null,
    kind text not null,
    tokenization text,
    texts_digest text,
    n_texts integer not null,
    is_usable boolean not null,
    status text not null,
    reason text,
    month date,
    low95 date,
    high95 date,
    primary key (model, resource, reference),
    check (kind in ('ngram', 'model')),
    check (rank >= 1),
    check (status = 'found' or (month is null and low95 is null and high95 is null)),
    check (not is_usable or status <> 'found')
);
comment on table perplexity.reference_tests is 'a reference of a model on a resource, itself tested for a cutoff';
comment on column perplexity.reference_tests.model is 'the model whose scores it is subtracted from';
comment on column perplexity.reference_tests.resource is 'name of the resource';
comment on column perplexity.reference_tests.reference is 'the reference, under whose name its scores are in perplexity.scores';
comment on column perplexity.reference_tests.rank is 'order of preference; the first usable one is reported';
comment on column perplexity.reference_tests.kind is 'ngram (cross-fitted on the resource) or model (any scored model)';
comment on column perplexity.reference_tests.tokenization is 'ngram: the digest of the tokenizer whose tokens it counts, or words; model: same or other, whether it scored the same tokens';
comment on column perplexity.reference_tests.texts_digest is 'digest of the texts and settings that an ngram reference was fitted on';
comment on column perplexity.reference_tests.n_texts is 'distinct texts it has a score for';
comment on column perplexity.reference_tests.is_usable is 'false where it has a cutoff of its own, or scores of too little of the resource';
comment on column perplexity.reference_tests.status is 'its own status without a reference; found means that it must not be used';
comment on column perplexity.reference_tests.reason is 'one plain sentence when it has no cutoff of its own, or no scores';
comment on column perplexity.reference_tests.month is 'its own cutoff, where found';
comment on column perplexity.reference_tests.low95 is 'lower end of the 95 % interval of its own cutoff';
comment on column perplexity.reference_tests.high95 is 'upper end of the 95 % interval of its own cutoff';

create table perplexity.effective_cutoffs (
    model text not null,
    resource text not null,
    estimator text not null,
    reference text not null,
    month date,
    low80 date,
    high80 date,
    low95 date,
    high95 date,
    p_flat double,
    n_topics integer,
    status text not null,
    reason text,
    lowest_month date,
    second_month date,
    first_month date,
    last_month date,
    is_default boolean not null,
    dtype text,
    max_tokens integer,
    context_tokens integer,
    primary key (model, resource, estimator, reference),
    check (p_flat between 0 and 1),
    check ((status = 'found') = (month is not null)),
    check (status = 'found' or reason is not null),
    check (low95 <= low80 and low80 <= high80 and high80 <= high95)
);
comment on table perplexity.effective_cutoffs is 'an effective cutoff';
comment on column perplexity.effective_cutoffs.model is 'the model, as users write it';
comment on column perplexity.effective_cutoffs.resource is 'name of the resource';
comment on column perplexity.effective_cutoffs.estimator is 'trimmed95_minmax (a description), panel, panel_noref or rise';
comment on column perplexity.effective_cutoffs.reference is 'reference model, or none';
comment on column perplexity.effective_cutoffs.month is 'the effective cutoff; only where the status is found';
comment on column perplexity.effective_cutoffs.low80 is 'lower end of the 80 % interval; a finding only where found';
comment on column perplexity.effective_cutoffs.high80 is 'upper end of the 80 % interval';
comment on column perplexity.effective_cutoffs.low95 is 'lower end of the 95 % interval';
comment on column perplexity.effective_cutoffs.high95 is 'upper end of the 95 % interval';
comment on column perplexity.effective_cutoffs.p_flat is 'p-value of there being no valley (panel) or no rise (rise)';
comment on column perplexity.effective_cutoffs.n_topics is 'topics used; for unpaired resources the fewest documents of a month';
comment on column perplexity.effective_cutoffs.status is 'found, or a word for what stands in the way';
comment on column perplexity.effective_cutoffs.reason is 'one plain sentence when the status is not found';
comment on column perplexity.effective_cutoffs.lowest_month is 'the point estimate whatever the status: data, not a finding';
comment on column perplexity.effective_cutoffs.second_month is 'the other dip, where the status is two-valley';
comment on column perplexity.effective_cutoffs.first_month is 'first month of the range';
comment on column perplexity.effective_cutoffs.last_month is 'last month of the range';
comment on column perplexity.effective_cutoffs.is_default is 'the one row to report for a model and a resource';
comment on column perplexity.effective_cutoffs.dtype is 'number format of the model''s scores';
comment on column perplexity.effective_cutoffs.max_tokens is 'tokens asked for of each text';
comment on column perplexity.effective_cutoffs.context_tokens is 'tokens scored at most, where the model''s context ended before max_tokens did';

create table perplexity.topic_cutoffs (
    model text not null,
    resource text not null,
    topic text not null,
    reference text not null,
    month date,
    low80 date,
    high80 date,
    low95 date,
    high95 date,
    p_value double,
    q_value double,
    n_edits integer,
    status text not null,
    reason text,
    primary key (model, resource, topic, reference),
    check (p_value between 0 and 1),
    check (q_value between 0 and 1),
    check ((status = 'found') = (month is not null)),
    check (status = 'found' or reason is not null),
    check (low95 <= low80 and low80 <= high80 and high80 <= high95)
);
comment on table perplexity.topic_cutoffs is 'the effective cutoff of one topic';
comment on column perplexity.topic_cutoffs.model is 'the model, as users write it';
comment on column perplexity.topic_cutoffs.resource is 'name of the resource';
comment on column perplexity.topic_cutoffs.topic is 'the topic';
comment on column perplexity.topic_cutoffs.reference is 'reference model';
comment on column perplexity.topic_cutoffs.month is 'the effective cutoff; only where the topic is resolved';
comment on column perplexity.topic_cutoffs.low80 is 'lower end of the 80 % interval; only where resolved';
comment on column perplexity.topic_cutoffs.high80 is 'upper end of the 80 % interval; only where resolved';
comment on column perplexity.topic_cutoffs.low95 is 'lower end of the 95 % interval; only where resolved';
comment on column perplexity.topic_cutoffs.high95 is 'upper end of the 95 % interval; only where resolved';
comment on column perplexity.topic_cutoffs.p_value is 'permutation p-value of the topic having no memory';
comment on column perplexity.topic_cutoffs.q_value is 'Benjamini-Hochberg adjusted p-value over the topics of the resource';
comment on column perplexity.topic_cutoffs.n_edits is 'months in which the topic was edited';
comment on column perplexity.topic_cutoffs.status is 'found, or a word for what stands in the way';
comment on column perplexity.topic_cutoffs.reason is 'one plain sentence when the status is not found';
