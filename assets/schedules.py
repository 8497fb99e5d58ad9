"""Schedules: what runs by the clock, in UTC. All are off until a user switches them on."""

import dagster as dg

from assets.jobs import read_spans, refresh_releases

daily_refresh = dg.ScheduleDefinition(
    name="daily_refresh_releases",
    job=refresh_releases,
    cron_schedule="17 4 * * *",
    execution_timezone="UTC",
    run_config={"ops": {"merge_releases": {"config": {"refresh": True}}}},
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every day at 04:17 UTC; two refreshes of one day leave identical tables.",
)
monthly_spans = dg.ScheduleDefinition(
    name="monthly_read_spans",
    job=read_spans,
    cron_schedule="43 5 2 * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="On the second of each month at 05:43 UTC: the month that has begun, and those not complete yet.",
)

# What the code location collects from this module.
SCHEDULES = [daily_refresh, monthly_spans]
