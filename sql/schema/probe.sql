-- The release probe: what was asked, what was answered, what follows.

create schema if not exists probe;

create table probe.runs (
    model text not null,
    run_id text not null,
    policy text not null,
    seed bigint not null,
    ask text not null,
    provider text,
    dataset_version text not null,
    code_version text not null,
    days date[] not null,
    rounds integer not null,
    questions integer not null,
    tokens bigint not null,
    cost double,
    started_at timestamp not null,
    chosen_at timestamp not null,
    status text not null,
    reason text,
    primary key (model, run_id),
    check (policy in ('calibrated', 'modelclock', 'modelclock_reference')),
    check (ask in ('chat', 'likelihood')),
    check (status in ('running', 'finished', 'budget', 'interrupted'))
);
comment on table probe.runs is 'one probe of a model: who was asked, how, and how far it came';
comment on column probe.runs.model is 'the model, as users write it';
comment on column probe.runs.run_id is 'identity of the run: the same policy, seed, calendar, prompts and model have the same one';
comment on column probe.runs.policy is 'what chose the questions';
comment on column probe.runs.seed is 'seed of the policy and of the jackknife';
comment on column probe.runs.ask is 'chat (one JSON exchange a round) or likelihood (token probabilities)';
comment on column probe.runs.provider is 'who served the model';
comment on column probe.runs.dataset_version is 'digest of the item set';
comment on column probe.runs.code_version is 'version of this product that asked';
comment on column probe.runs.days is 'the eligible days of the calendar; positions index them from 0';
comment on column probe.runs.rounds is 'exchanges so far, failed ones included';
comment on column probe.runs.questions is 'questions put so far';
comment on column probe.runs.tokens is 'prompt and reply tokens so far, as the server counted them';
comment on column probe.runs.cost is 'cost so far, where a price is known';
comment on column probe.runs.started_at is 'UTC instant at which the run was first started';
comment on column probe.runs.chosen_at is 'UTC instant at which these settings were last chosen; the newest is the model''s current run';
comment on column probe.runs.status is 'running, finished, budget (a ceiling was reached) or interrupted (an exchange failed)';
comment on column probe.runs.reason is 'one plain sentence on why it stands there';

create table probe.rounds (
    model text not null,
    run_id text not null,
    replicate integer not null,
    round integer not null,
    messages text,
    reply text,
    usage text,
    status text not null,
    reason text,
    asked_at timestamp,
    primary key (model, run_id, replicate, round)
);
comment on table probe.rounds is 'one exchange with a model';
comment on column probe.rounds.model is 'the model, as users write it';
comment on column probe.rounds.run_id is 'identity of the probe run';
comment on column probe.rounds.replicate is 'pass, from 0';
comment on column probe.rounds.round is 'round within the pass, from 0';
comment on column probe.rounds.messages is 'the messages sent, as JSON';
comment on column probe.rounds.reply is 'the raw reply';
comment on column probe.rounds.usage is 'token usage and the parameters really used, as JSON';
comment on column probe.rounds.status is 'ok, partial (some answers missing), empty, refused, truncated, unparsed, nonfinite, low_mass (the labels have next to none of the probability), prompt_truncated, or error (nothing was asked)';
comment on column probe.rounds.reason is 'one plain sentence when the status is not ok';
comment on column probe.rounds.asked_at is 'UTC instant of the reply';

create table probe.answers (
    model text not null,
    run_id text not null,
    replicate integer not null,
    round integer not null,
    question integer not null,
    position integer not null,
    released_on date not null,
    project text not null,
    version text not null,
    kind text not null,
    answer text,
    p_yes double,
    weight double,
    parse_status text not null,
    counted boolean not null,
    primary key (model, run_id, replicate, round, question),
    check (kind in ('real', 'decoy')),
    check (answer in ('YES', 'NO', 'UNKNOWN')),
    check (p_yes between 0 and 1),
    check (answer is not null or parse_status <> 'ok'),
    check (weight is null or answer is not null)
);
comment on table probe.answers is 'one question answered';
comment on column probe.answers.model is 'the model, as users write it';
comment on column probe.answers.run_id is 'identity of the probe run';
comment on column probe.answers.replicate is 'pass, from 0';
comment on column probe.answers.round is 'round within the pass, from 0';
comment on column probe.answers.question is 'index of the question within its round';
comment on column probe.answers.position is 'index of the day in the calendar';
comment on column probe.answers.released_on is 'the calendar day';
comment on column probe.answers.project is 'project name';
comment on column probe.answers.version is 'the version asked about';
comment on column probe.answers.kind is 'real or decoy';
comment on column probe.answers.answer is 'YES, NO, UNKNOWN; NULL where missing';
comment on column probe.answers.p_yes is 'probability of YES, where it can be read';
comment on column probe.answers.weight is 'weight in the modelclock likelihood: 1, or 0.25 for a YES beside a decoy answered YES; NULL where missing';
comment on column probe.answers.counted is 'whether the calibrated estimator counts it: the first usable answer to this question';
comment on column probe.answers.parse_status is 'ok, or why the answer is missing';

create table probe.posteriors (
    model text not null,
    run_id text not null,
    estimator text not null,
    replicate integer not null,
    position integer not null,
    released_on date,
    probability double not null,
    primary key (model, run_id, estimator, replicate, position),
    check (probability between 0 and 1.000000001)
);
comment on table probe.posteriors is 'posterior mass at a position';
comment on column probe.posteriors.model is 'the model, as users write it';
comment on column probe.posteriors.run_id is 'identity of the probe run';
comment on column probe.posteriors.estimator is 'calibrated, modelclock, or modelclock_reference';
comment on column probe.posteriors.replicate is 'pass, or -1 for all passes together';
comment on column probe.posteriors.position is 'position in the calendar';
comment on column probe.posteriors.released_on is 'calendar day before which knowledge stops; NULL beyond the last day';
comment on column probe.posteriors.probability is 'posterior mass; for calibrated together with a boundary inside the calendar, so that the sum is that evidence';

create table probe.boundaries (
    model text not null,
    run_id text not null,
    estimator text not null,
    policy text not null,
    provider text,
    dataset_version text not null,
    code_version text not null,
    label text not null,
    estimate_from date,
    estimate_to date,
    low80 date,
    high80 date,
    low95 date,
    high95 date,
    decoy_yes integer,
    decoy_total integer,
    real_yes integer,
    real_total integer,
    replicates integer,
    rounds integer,
    questions integer,
    status text not null,
    reason text,
    details text,
    primary key (model, run_id, estimator),
    check (low95 <= high95),
    check (status <> 'ok' or low95 is not null),
    check (low80 <= high80),
    check (estimate_from <= estimate_to)
);
comment on table probe.boundaries is 'a model''s dated boundary';
comment on column probe.boundaries.model is 'the model, as users write it';
comment on column probe.boundaries.run_id is 'identity of the probe run';
comment on column probe.boundaries.estimator is 'calibrated, modelclock, or modelclock_reference';
comment on column probe.boundaries.policy is 'the policy that asked the questions';
comment on column probe.boundaries.provider is 'who served the model';
comment on column probe.boundaries.dataset_version is 'digest of the item set';
comment on column probe.boundaries.code_version is 'version of this product';
comment on column probe.boundaries.label is 'the estimate in words';
comment on column probe.boundaries.estimate_from is 'start of the estimated range; NULL without a finding';
comment on column probe.boundaries.estimate_to is 'end of the estimated range';
comment on column probe.boundaries.low80 is 'lower end of the 80 % interval';
comment on column probe.boundaries.high80 is 'upper end of the 80 % interval';
comment on column probe.boundaries.low95 is 'lower end of the 95 % interval';
comment on column probe.boundaries.high95 is 'upper end of the 95 % interval';
comment on column probe.boundaries.decoy_yes is 'decoys answered YES';
comment on column probe.boundaries.decoy_total is 'decoys answered';
comment on column probe.boundaries.real_yes is 'real releases answered YES';
comment on column probe.boundaries.real_total is 'real releases answered';
comment on column probe.boundaries.replicates is 'passes';
comment on column probe.boundaries.rounds is 'rounds over all passes';
comment on column probe.boundaries.questions is 'questions answered';
comment on column probe.boundaries.status is 'ok, right_censored, left_censored, no_boundary, drift, inconclusive, unanswered, low_mass, or wide';
comment on column probe.boundaries.reason is 'one plain sentence behind the status';
comment on column probe.boundaries.details is 'evidences and stability figures, as JSON';
