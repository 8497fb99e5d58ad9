-- Models that can be dated, and what others claim about them.

create schema if not exists models;

create table models.models (
    model text not null,
    partition_key text not null unique,
    name text,
    family text,
    n_params bigint,
    backend text,
    source text,
    revision text,
    ask text,
    dtype text,
    released_on date,
    released_precision text,
    context_length integer,
    is_open boolean,
    is_listed boolean not null,
    provider text,
    spec_digest text,
    primary key (model),
    check (n_params > 0),
    check (context_length > 0),
    check (backend in ('transformers', 'openai')),
    check (ask in ('chat', 'likelihood')),
    check (released_precision in ('day', 'month', 'year')),
    check (is_listed = (backend is not null)),
    check ((released_on is null) = (released_precision is null))
);
comment on table models.models is 'a model that can be dated, or about which facts are known';
comment on column models.models.model is 'the model, as users write it; provider/name where only facts are known';
comment on column models.models.partition_key is 'reversible safe encoding of the model name, used as Dagster partition key';
comment on column models.models.name is 'name for people';
comment on column models.models.family is 'model family';
comment on column models.models.n_params is 'number of parameters';
comment on column models.models.backend is 'transformers or openai; NULL where only facts are known';
comment on column models.models.source is 'where the weights or the endpoint are';
comment on column models.models.revision is 'pinned revision of the source';
comment on column models.models.ask is 'how it is asked: chat or likelihood';
comment on column models.models.dtype is 'number format of the weights, where they run here';
comment on column models.models.released_on is 'day of release; the first day where only a month or year is known';
comment on column models.models.released_precision is 'day, month or year';
comment on column models.models.context_length is 'context window in tokens';
comment on column models.models.is_open is 'whether weights can be downloaded';
comment on column models.models.is_listed is 'whether data/models.yaml lists it, so that it can be run';
comment on column models.models.provider is 'who publishes or serves the model';
comment on column models.models.spec_digest is 'digest of what in its entry could change results';

create table models.declared_cutoffs (
    model text not null,
    source text not null,
    kind text not null,
    url text,
    value date,
    value_to date,
    precision text,
    stated text,
    retrieved_on date,
    is_valid boolean not null,
    is_conflicting boolean not null,
    flags text,
    reason text,
    primary key (model, source, kind),
    check (kind in ('reported', 'training_data', 'reliable_knowledge', 'fine_tuning')),
    check (precision in ('day', 'month', 'year')),
    check (value <= value_to),
    check (is_valid or reason is not null),
    check (value is not null or not is_valid)
);
comment on table models.declared_cutoffs is 'one source''s claim of a training cutoff';
comment on column models.declared_cutoffs.model is 'the model, as in models.models';
comment on column models.declared_cutoffs.source is 'who states the claim';
comment on column models.declared_cutoffs.kind is 'what the date is said to be; reported where the source does not say';
comment on column models.declared_cutoffs.url is 'where the claim can be read';
comment on column models.declared_cutoffs.value is 'first day of the claimed day, month or year; NULL where none can be read';
comment on column models.declared_cutoffs.value_to is 'last day of the claimed day, month or year';
comment on column models.declared_cutoffs.precision is 'day, month or year';
comment on column models.declared_cutoffs.stated is 'the claim in the source''s own words';
comment on column models.declared_cutoffs.retrieved_on is 'day on which the claim was read, where known';
comment on column models.declared_cutoffs.is_valid is 'false where no date is stated or the date is impossible';
comment on column models.declared_cutoffs.is_conflicting is 'whether another source''s valid claim excludes this one';
comment on column models.declared_cutoffs.flags is 'what is odd about it, separated by commas';
comment on column models.declared_cutoffs.reason is 'why the claim is not valid or with what it is in conflict';

create table models.training_corpora (
    model text not null,
    family text not null,
    corpus text not null,
    corpus_kind text not null,
    part_of text,
    n_dumps integer,
    dump_from date,
    dump_from_precision text,
    dump_to date,
    dump_to_precision text,
    upsampling integer,
    deduplication text,
    excludes text,
    size_gb integer,
    n_tokens bigint,
    is_verified boolean not null,
    note text,
    source text not null,
    primary key (model, corpus),
    check (dump_from <= dump_to),
    check (dump_from_precision in ('day', 'month', 'year')),
    check (dump_to_precision in ('day', 'month', 'year'))
);
comment on table models.training_corpora is 'a corpus in a model''s training mix';
comment on column models.training_corpora.model is 'the model or suite';
comment on column models.training_corpora.family is 'model family; joins models.models.family';
comment on column models.training_corpora.corpus is 'corpus name';
comment on column models.training_corpora.corpus_kind is 'crawl, collection, encyclopaedia, pipeline or unknown';
comment on column models.training_corpora.part_of is 'the corpus of the same mix that holds it';
comment on column models.training_corpora.n_dumps is 'number of dumps used';
comment on column models.training_corpora.dump_from is 'first day that the earliest dump may have';
comment on column models.training_corpora.dump_from_precision is 'day, month or year';
comment on column models.training_corpora.dump_to is 'last day that the latest dump may have';
comment on column models.training_corpora.dump_to_precision is 'day, month or year';
comment on column models.training_corpora.upsampling is 'how often each document was shown';
comment on column models.training_corpora.deduplication is 'unit at which the corpus was deduplicated';
comment on column models.training_corpora.excludes is 'what its makers left out';
comment on column models.training_corpora.size_gb is 'size of the corpus';
comment on column models.training_corpora.n_tokens is 'tokens of the corpus';
comment on column models.training_corpora.is_verified is 'false where the training data are not public';
comment on column models.training_corpora.note is 'what the source says';
comment on column models.training_corpora.source is 'where it is stated';
