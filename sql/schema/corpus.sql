-- What a training corpus holds.

create schema if not exists corpus;

create table corpus.corpora (
    corpus text not null,
    subcorpus text not null,
    location text not null,
    dump_month date,
    n_documents bigint,
    n_broken bigint,
    n_bytes bigint,
    status text not null,
    reason text,
    primary key (corpus, subcorpus, location)
);
comment on table corpus.corpora is 'a training corpus shard that was mined';
comment on column corpus.corpora.corpus is 'corpus name';
comment on column corpus.corpora.subcorpus is 'part of the corpus';
comment on column corpus.corpora.location is 'file of the shard';
comment on column corpus.corpora.dump_month is 'month of the crawl or dump';
comment on column corpus.corpora.n_documents is 'documents read';
comment on column corpus.corpora.n_broken is 'records that could not be read';
comment on column corpus.corpora.n_bytes is 'bytes of text';
comment on column corpus.corpora.status is 'ok, or a word for what stands in the way';
comment on column corpus.corpora.reason is 'one plain sentence when the status is not ok';

create table corpus.matches (
    corpus text not null,
    subcorpus text not null,
    resource text not null,
    topic text not null,
    document_id text not null,
    location text not null,
    bm25_rank integer,
    bm25_score double,
    distance double,
    n_months integer,
    is_match boolean not null,
    months date[],
    primary key (corpus, resource, topic, document_id),
    check (distance >= 0)
);
comment on table corpus.matches is 'a corpus document matched to a topic';
comment on column corpus.matches.corpus is 'corpus name';
comment on column corpus.matches.subcorpus is 'part of the corpus';
comment on column corpus.matches.resource is 'versioned resource';
comment on column corpus.matches.topic is 'its topic';
comment on column corpus.matches.document_id is 'document in the corpus';
comment on column corpus.matches.location is 'file and line, row or offset';
comment on column corpus.matches.bm25_rank is 'rank among the hits, from 1';
comment on column corpus.matches.bm25_score is 'score of the hit';
comment on column corpus.matches.distance is 'edits divided by the characters of the document';
comment on column corpus.matches.n_months is 'months tied for the smallest distance';
comment on column corpus.matches.is_match is 'whether the distance is strictly under the limit';
comment on column corpus.matches.months is 'the months tied for the smallest distance';

create table corpus.version_counts (
    corpus text not null,
    subcorpus text not null,
    resource text not null,
    month date not null,
    method text not null,
    weight double not null,
    primary key (corpus, subcorpus, resource, month, method),
    check (weight >= 0)
);
comment on table corpus.version_counts is 'mined copies a month';
comment on column corpus.version_counts.corpus is 'corpus name';
comment on column corpus.version_counts.subcorpus is 'part of the corpus';
comment on column corpus.version_counts.resource is 'versioned resource';
comment on column corpus.version_counts.month is 'first day of the month';
comment on column corpus.version_counts.method is 'edit_distance or ngram';
comment on column corpus.version_counts.weight is 'copies, ties shared';

create table corpus.duplicate_pairs (
    corpus text not null,
    left_id text not null,
    right_id text not null,
    class text not null,
    distance double,
    left_location text,
    right_location text,
    primary key (corpus, left_id, right_id, class)
);
comment on table corpus.duplicate_pairs is 'two copies of one text';
comment on column corpus.duplicate_pairs.corpus is 'corpus name';
comment on column corpus.duplicate_pairs.left_id is 'one document';
comment on column corpus.duplicate_pairs.right_id is 'the other document';
comment on column corpus.duplicate_pairs.class is 'exact, citation_numbers, whitespace, three_sentence_span, near, mirror';
comment on column corpus.duplicate_pairs.distance is 'edits divided by characters, or 1 - similarity';
comment on column corpus.duplicate_pairs.left_location is 'where the one is';
comment on column corpus.duplicate_pairs.right_location is 'where the other is';
