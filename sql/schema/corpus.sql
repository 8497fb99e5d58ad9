-- What a training corpus holds.

create schema if not exists corpus;

create table corpus.corpora (
    corpus text not null,
    subcorpus text not null,
    location text not null,
    dump_month date,
    is_crawl boolean,
    n_documents bigint,
    n_broken bigint,
    n_bytes bigint,
    shard_key text,
    status text not null,
    reason text,
    primary key (corpus, subcorpus, location),
    check (n_documents >= 0),
    check (n_broken >= 0)
);
comment on table corpus.corpora is 'a training corpus shard that was mined';
comment on column corpus.corpora.corpus is 'corpus name';
comment on column corpus.corpora.subcorpus is 'part of the corpus';
comment on column corpus.corpora.location is 'file of the shard';
comment on column corpus.corpora.dump_month is 'month of the crawl or dump, where the settings tell it';
comment on column corpus.corpora.is_crawl is 'whether the documents come from a crawl';
comment on column corpus.corpora.n_documents is 'documents read';
comment on column corpus.corpora.n_broken is 'records of the file that could not be read; told on the row of its largest part';
comment on column corpus.corpora.n_bytes is 'bytes of text';
comment on column corpus.corpora.shard_key is 'name of what is derived from the file as it is now';
comment on column corpus.corpora.status is 'ok, empty (no document in it could be read) or failed (it could not be reached)';
comment on column corpus.corpora.reason is 'one plain sentence when the status is not ok';

create table corpus.broken_records (
    corpus text not null,
    location text not null,
    unit text not null,
    position bigint not null,
    byte_offset bigint,
    kind text not null,
    reason text not null,
    primary key (corpus, location, unit, position, kind)
);
comment on table corpus.broken_records is 'a record of a corpus that could not be read';
comment on column corpus.broken_records.corpus is 'corpus name';
comment on column corpus.broken_records.location is 'file of the shard';
comment on column corpus.broken_records.unit is 'what is counted: line, row, record or file';
comment on column corpus.broken_records.position is 'which one, from 1';
comment on column corpus.broken_records.byte_offset is 'where it begins: in the stored file for WARC, in the decompressed stream for JSON lines and ARC';
comment on column corpus.broken_records.kind is 'one word for what is wrong';
comment on column corpus.broken_records.reason is 'one plain sentence';

create table corpus.matches (
    corpus text not null,
    subcorpus text not null,
    resource text not null,
    topic text not null,
    document_id text not null,
    location text not null,
    url text,
    source_id text,
    crawled_on date,
    n_chars integer,
    bm25_rank integer,
    bm25_score double,
    edits integer,
    distance double,
    n_months integer,
    is_match boolean not null,
    months date[],
    weight double,
    replaced_share double,
    primary key (corpus, resource, topic, document_id),
    check (distance >= 0),
    check (bm25_rank >= 1),
    check (is_match = (distance is not null)),
    check (is_match = (n_months is not null))
);
comment on table corpus.matches is 'a corpus document that a search returned for a topic, and the version it is';
comment on column corpus.matches.corpus is 'corpus name';
comment on column corpus.matches.subcorpus is 'part of the corpus';
comment on column corpus.matches.resource is 'versioned resource';
comment on column corpus.matches.topic is 'its topic';
comment on column corpus.matches.document_id is 'document in the corpus: digest of its text, file and position';
comment on column corpus.matches.location is 'file and line, row or record, with the byte offset where there is one';
comment on column corpus.matches.url is 'address of the document';
comment on column corpus.matches.source_id is 'name of the document in the corpus itself';
comment on column corpus.matches.crawled_on is 'day on which it was crawled; the first of the month where only the dump is known';
comment on column corpus.matches.n_chars is 'characters of the document';
comment on column corpus.matches.bm25_rank is 'rank among the hits, from 1';
comment on column corpus.matches.bm25_score is 'BM25 score of the hit by the statistics of the whole corpus';
comment on column corpus.matches.edits is 'edits to the nearest version; NULL where none is under the limit';
comment on column corpus.matches.distance is 'edits divided by the characters of the document; NULL where none is under the limit';
comment on column corpus.matches.n_months is 'months tied for the smallest distance';
comment on column corpus.matches.is_match is 'whether the distance is strictly under the limit';
comment on column corpus.matches.months is 'the months tied for the smallest distance';
comment on column corpus.matches.weight is 'copies that the row counts: 1 where the document is nearest to this topic, shared where topics tie, else 0';
comment on column corpus.matches.replaced_share is 'share of its characters that could not be decoded';

create table corpus.version_counts (
    corpus text not null,
    subcorpus text not null,
    resource text not null,
    month date not null,
    method text not null,
    weight double not null,
    normalisation text,
    primary key (corpus, subcorpus, resource, month, method),
    check (weight >= 0),
    check (method in ('edit_distance', 'ngram'))
);
comment on table corpus.version_counts is 'mined copies a month';
comment on column corpus.version_counts.corpus is 'corpus name';
comment on column corpus.version_counts.subcorpus is 'part of the corpus';
comment on column corpus.version_counts.resource is 'versioned resource';
comment on column corpus.version_counts.month is 'first day of the month';
comment on column corpus.version_counts.method is 'edit_distance or ngram';
comment on column corpus.version_counts.weight is 'copies, ties shared; for ngram the discounted count';
comment on column corpus.version_counts.normalisation is 'how texts were made comparable';

create table corpus.duplicate_pairs (
    corpus text not null,
    left_id text not null,
    right_id text not null,
    class text not null,
    distance double,
    left_location text,
    right_location text,
    primary key (corpus, left_id, right_id, class),
    check (distance >= 0)
);
comment on table corpus.duplicate_pairs is 'two copies of one text';
comment on column corpus.duplicate_pairs.corpus is 'corpus name';
comment on column corpus.duplicate_pairs.left_id is 'one document';
comment on column corpus.duplicate_pairs.right_id is 'the other document';
comment on column corpus.duplicate_pairs.class is 'exact, whitespace, citation_numbers, near, three_sentence_span, mirror';
comment on column corpus.duplicate_pairs.distance is 'edits divided by characters of the longer text, or 1 - similarity';
comment on column corpus.duplicate_pairs.left_location is 'where the one is';
comment on column corpus.duplicate_pairs.right_location is 'where the other is; for mirrors of a resource its topic and month';

create table corpus.dedup_audit (
    corpus text not null,
    rule text not null,
    class text not null,
    is_stated boolean not null,
    n_pairs integer not null,
    n_caught integer not null,
    n_missed integer not null,
    mean_removed double,
    escaped_left text,
    escaped_right text,
    primary key (corpus, rule, class),
    check (n_caught + n_missed = n_pairs)
);
comment on table corpus.dedup_audit is 'how a deduplication rule does on the duplicates of one class';
comment on column corpus.dedup_audit.corpus is 'corpus name';
comment on column corpus.dedup_audit.rule is 'document, exact, paragraph, three_sentence_span, fuzzy or domain';
comment on column corpus.dedup_audit.class is 'class of the pairs';
comment on column corpus.dedup_audit.is_stated is 'whether the makers of the corpus state this rule';
comment on column corpus.dedup_audit.n_pairs is 'pairs found in the corpus';
comment on column corpus.dedup_audit.n_caught is 'pairs of which the rule removes more than half of one document';
comment on column corpus.dedup_audit.n_missed is 'pairs that the rule leaves';
comment on column corpus.dedup_audit.mean_removed is 'mean share of the second document that the rule removes';
comment on column corpus.dedup_audit.escaped_left is 'where one document of a pair is that the rule leaves';
comment on column corpus.dedup_audit.escaped_right is 'where the other one is';

create table corpus.reweightings (
    corpus text not null,
    resource text not null,
    removed text not null,
    n_groups integer not null,
    typical_month date,
    bulk_from date,
    bulk_to date,
    primary key (corpus, resource, removed)
);
comment on table corpus.reweightings is 'the typical month of the copies once a class of duplicates counts once';
comment on column corpus.reweightings.corpus is 'corpus name';
comment on column corpus.reweightings.resource is 'versioned resource';
comment on column corpus.reweightings.removed is 'class of duplicates that counts once; none for the histogram as mined';
comment on column corpus.reweightings.n_groups is 'groups of duplicates of that class';
comment on column corpus.reweightings.typical_month is 'weighted median of the bulk';
comment on column corpus.reweightings.bulk_from is 'first month of the shortest run that holds half of the copies';
comment on column corpus.reweightings.bulk_to is 'its last month';

create table corpus.explanations (
    corpus text not null,
    resource text not null,
    model text not null,
    reported_month date,
    effective_month date,
    n_copies integer not null,
    typical_month date,
    bulk_from date,
    bulk_to date,
    typical_low95 date,
    typical_high95 date,
    gap_months double,
    old_crawl_months double,
    old_crawl_months_low95 double,
    old_crawl_months_high95 double,
    duplicate_months double,
    duplicate_months_low95 double,
    duplicate_months_high95 double,
    remainder_months double,
    old_crawl_share double,
    duplicate_share double,
    correlation double,
    p_value double,
    lag_months integer,
    n_months integer,
    sentence text not null,
    status text not null,
    reason text,
    primary key (corpus, resource, model),
    check (p_value between 0 and 1),
    check (correlation between -1 and 1)
);
comment on table corpus.explanations is 'why the cutoff of a resource lies where it does';
comment on column corpus.explanations.corpus is 'corpus name';
comment on column corpus.explanations.resource is 'versioned resource';
comment on column corpus.explanations.model is 'a model trained on the corpus, or none';
comment on column corpus.explanations.reported_month is 'month that is advertised for the resource';
comment on column corpus.explanations.effective_month is 'effective cutoff by perplexity, only where one was found';
comment on column corpus.explanations.n_copies is 'mined copies';
comment on column corpus.explanations.typical_month is 'typical month of the copies';
comment on column corpus.explanations.bulk_from is 'first month of the shortest run that holds half of the copies';
comment on column corpus.explanations.bulk_to is 'its last month';
comment on column corpus.explanations.typical_low95 is 'lower end of the 95 % interval of the typical month';
comment on column corpus.explanations.typical_high95 is 'upper end of the 95 % interval of the typical month';
comment on column corpus.explanations.gap_months is 'months from the typical to the reported month';
comment on column corpus.explanations.old_crawl_months is 'part of the gap that old pages in crawls account for';
comment on column corpus.explanations.old_crawl_months_low95 is 'lower end of its 95 % interval';
comment on column corpus.explanations.old_crawl_months_high95 is 'upper end of its 95 % interval';
comment on column corpus.explanations.duplicate_months is 'part of the gap that duplicates account for';
comment on column corpus.explanations.duplicate_months_low95 is 'lower end of its 95 % interval';
comment on column corpus.explanations.duplicate_months_high95 is 'upper end of its 95 % interval';
comment on column corpus.explanations.remainder_months is 'what both together leave, such as older dumps in the mix';
comment on column corpus.explanations.old_crawl_share is 'share of the gap; NULL where shares make no sense';
comment on column corpus.explanations.duplicate_share is 'share of the gap; NULL where shares make no sense';
comment on column corpus.explanations.correlation is 'rank correlation of copies and perplexity; negative is agreement';
comment on column corpus.explanations.p_value is 'share of circular shifts at least as negative';
comment on column corpus.explanations.lag_months is 'shift of the curve that agrees best; positive where its minimum comes later';
comment on column corpus.explanations.n_months is 'months compared';
comment on column corpus.explanations.sentence is 'the explanation in one sentence';
comment on column corpus.explanations.status is 'ok, flat (the copies have no typical month) or missing (no copies)';
comment on column corpus.explanations.reason is 'one plain sentence when the status is not ok';

create table corpus.truth_checks (
    corpus text not null,
    resource text not null,
    topic text not null,
    document_id text,
    revision text not null,
    true_months date[],
    found_months date[],
    outcome text not null,
    reason text not null,
    primary key (corpus, resource, topic, revision),
    check (outcome in ('right', 'wrong', 'unmatched', 'outside', 'unknown_topic'))
);
comment on table corpus.truth_checks is 'a corpus document whose version is known, and whether it was found';
comment on column corpus.truth_checks.corpus is 'corpus name';
comment on column corpus.truth_checks.resource is 'versioned resource';
comment on column corpus.truth_checks.topic is 'its topic';
comment on column corpus.truth_checks.document_id is 'document in the corpus';
comment on column corpus.truth_checks.revision is 'version that the document is known to be';
comment on column corpus.truth_checks.true_months is 'months in which that version was in force';
comment on column corpus.truth_checks.found_months is 'months that it was attributed to';
comment on column corpus.truth_checks.outcome is 'right, wrong, unmatched, outside (the version is in no month), or unknown_topic';
comment on column corpus.truth_checks.reason is 'one plain sentence';
