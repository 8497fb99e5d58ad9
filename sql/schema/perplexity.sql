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
    prefix_token integer,
    scorer_version text not null,
    primary key (model, text_sha256, max_tokens, dtype),
    check (isfinite(mean_nll)),
    check (isfinite(perplexity)),
    check (n_tokens >= 0)
);
comment on table perplexity.scores is 'a distinct text scored by a model';
comment on column perplexity.scores.model is 'the model, as users write it';
comment on column perplexity.scores.text_sha256 is 'the text';
comment on column perplexity.scores.max_tokens is 'limit in force';
comment on column perplexity.scores.n_tokens is 'tokens scored';
comment on column perplexity.scores.mean_nll is 'mean negative log-likelihood a token, nats';
comment on column perplexity.scores.perplexity is 'exp(mean_nll)';
comment on column perplexity.scores.status is 'ok, or a word for what stands in the way';
comment on column perplexity.scores.reason is 'one plain sentence when the status is not ok';
comment on column perplexity.scores.dtype is 'number format of the weights';
comment on column perplexity.scores.prefix_token is 'id of the BOS before the text, NULL if none';
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
    primary key (model, resource, month)
);
comment on table perplexity.monthly_curves is 'a point of a curve';
comment on column perplexity.monthly_curves.model is 'the model, as users write it';
comment on column perplexity.monthly_curves.resource is 'name of the resource';
comment on column perplexity.monthly_curves.month is 'first day of the month';
comment on column perplexity.monthly_curves.n_documents is 'documents averaged';
comment on column perplexity.monthly_curves.n_excluded is 'documents left out, with a reason in their rows';
comment on column perplexity.monthly_curves.mean_perplexity is 'mean of perplexities after cutting 2.5 % from each tail';
comment on column perplexity.monthly_curves.relative_perplexity is 'min-max over months; NULL where the range is zero';
comment on column perplexity.monthly_curves.low95 is 'lower end of the band of the relative curve';
comment on column perplexity.monthly_curves.high95 is 'upper end of the band of the relative curve';

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
    primary key (model, resource, estimator, reference),
    check (p_flat between 0 and 1)
);
comment on table perplexity.effective_cutoffs is 'an effective cutoff';
comment on column perplexity.effective_cutoffs.model is 'the model, as users write it';
comment on column perplexity.effective_cutoffs.resource is 'name of the resource';
comment on column perplexity.effective_cutoffs.estimator is 'trimmed95_minmax, panel, panel_noref, rise or topic';
comment on column perplexity.effective_cutoffs.reference is 'reference model, or none';
comment on column perplexity.effective_cutoffs.month is 'the effective cutoff; only where found';
comment on column perplexity.effective_cutoffs.low80 is 'lower end of the 80 % interval';
comment on column perplexity.effective_cutoffs.high80 is 'upper end of the 80 % interval';
comment on column perplexity.effective_cutoffs.low95 is 'lower end of the 95 % interval';
comment on column perplexity.effective_cutoffs.high95 is 'upper end of the 95 % interval';
comment on column perplexity.effective_cutoffs.p_flat is 'p-value of flatness';
comment on column perplexity.effective_cutoffs.n_topics is 'topics used';
comment on column perplexity.effective_cutoffs.status is 'ok, or a word for what stands in the way';
comment on column perplexity.effective_cutoffs.reason is 'one plain sentence when the status is not ok';

create table perplexity.topic_cutoffs (
    model text not null,
    resource text not null,
    topic text not null,
    reference text not null,
    month date,
    low95 date,
    high95 date,
    p_value double,
    q_value double,
    status text not null,
    reason text,
    primary key (model, resource, topic, reference),
    check (p_value between 0 and 1),
    check (q_value between 0 and 1)
);
comment on table perplexity.topic_cutoffs is 'the effective cutoff of one topic';
comment on column perplexity.topic_cutoffs.model is 'the model, as users write it';
comment on column perplexity.topic_cutoffs.resource is 'name of the resource';
comment on column perplexity.topic_cutoffs.topic is 'the topic';
comment on column perplexity.topic_cutoffs.reference is 'reference model, or none';
comment on column perplexity.topic_cutoffs.month is 'the effective cutoff; only where accepted';
comment on column perplexity.topic_cutoffs.low95 is 'lower end of the 95 % interval';
comment on column perplexity.topic_cutoffs.high95 is 'upper end of the 95 % interval';
comment on column perplexity.topic_cutoffs.p_value is 'permutation p-value';
comment on column perplexity.topic_cutoffs.q_value is 'Benjamini-Hochberg adjusted p-value';
comment on column perplexity.topic_cutoffs.status is 'ok, or a word for what stands in the way';
comment on column perplexity.topic_cutoffs.reason is 'one plain sentence when the status is not ok';
