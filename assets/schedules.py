"""Schedules: what runs by the clock, in UTC. All are off until a user switches them on."""

import dagster as dg

from assets.jobs import refresh_releases

daily_refresh = dg.ScheduleDefinition(
    name="daily_refresh_releases",
    job=refresh_releases,
    cron_schedule="17 4 * * *",
    execution_timezone="UTC",
    run_config={"ops": {"merge_releases": {"config": {"refresh": True}}}},
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every day at 04:17 UTC; two refreshes of one day leave identical tables.",
)
SCHEDULES = [daily_refresh]
