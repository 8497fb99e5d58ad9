-- Models that can be dated, and what others claim about them.

create schema if not exists models;

create table models.models (
    model text not null,
    partition_key text not null unique,
    family text,
    n_params bigint,
    backend text,
    source text,
    revision text,
    released_on date,
    context_length integer,
    is_open boolean,
    is_listed boolean not null,
    provider text,
    primary key (model),
    check (n_params > 0),
    check (context_length > 0)
);
comment on table models.models is 'a model that can be dated';
comment on column models.models.model is 'the model, as users write it';
comment on column models.models.partition_key is 'reversible safe encoding of the model name, used as Dagster partition key';
comment on column models.models.family is 'model family';
comment on column models.models.n_params is 'number of parameters';
comment on column models.models.backend is 'transformers or openai; NULL where only facts are known';
comment on column models.models.source is 'where the weights or the endpoint are';
comment on column models.models.revision is 'pinned revision of the source';
comment on column models.models.released_on is 'day of release';
comment on column models.models.context_length is 'context window in tokens';
comment on column models.models.is_open is 'whether weights can be downloaded';
comment on column models.models.is_listed is 'whether data/models.yaml lists it, so that it can be run';
comment on column models.models.provider is 'who publishes the model';

create table models.declared_cutoffs (
    model text not null,
    source text not null,
    url text,
    value date,
    precision text,
    retrieved_on date,
    is_valid boolean not null,
    reason text,
    primary key (model, source),
    check (precision in ('day', 'month', 'year'))
);
comment on table models.declared_cutoffs is 'one source''s claim of a training cutoff';
comment on column models.declared_cutoffs.model is 'the model, as users write it';
comment on column models.declared_cutoffs.source is 'who states the claim';
comment on column models.declared_cutoffs.url is 'where the claim can be read';
comment on column models.declared_cutoffs.value is 'first day of the claimed day, month or year; NULL where unreadable';
comment on column models.declared_cutoffs.precision is 'day, month or year';
comment on column models.declared_cutoffs.retrieved_on is 'day on which the claim was read';
comment on column models.declared_cutoffs.is_valid is 'false for impossible claims';
comment on column models.declared_cutoffs.reason is 'why the claim is not valid or is in conflict';

create table models.training_corpora (
    model text not null,
    corpus text not null,
    dump_from date,
    dump_to date,
    is_verified boolean not null,
    note text,
    primary key (model, corpus)
);
comment on table models.training_corpora is 'a corpus in a model''s training mix';
comment on column models.training_corpora.model is 'the model, as users write it';
comment on column models.training_corpora.corpus is 'corpus name';
comment on column models.training_corpora.dump_from is 'first day of the earliest dump used';
comment on column models.training_corpora.dump_to is 'first day of the month of the latest dump used';
comment on column models.training_corpora.is_verified is 'false where the training data are not public';
comment on column models.training_corpora.note is 'what the source says';
