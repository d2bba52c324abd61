import {
  type GroupDimension,
  type NamedDimension,
  namedDimensions,
  needsCalls,
  type UsageStep,
} from "../../domain/usage/usage.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { CallFilter, Percentiles, UsageTotal } from "../../store/usage-reports.ts";
import {
  callDetailSchema,
  callQuerySchema,
  callRowSchema,
  seriesQuerySchema,
  seriesSchema,
  totalsQuerySchema,
  totalsSchema,
  usageTotalSchema,
  type UsageTotalView,
} from "../contract/usage.ts";
import { listOf } from "../contract/values.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { invalidField } from "../operation/refusals.ts";
import { requireKnownNames } from "../operation/known-names.ts";
import { emptyList, listAnswer, pageRequest, requireVisible } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { viewCall, viewCallDetail } from "./call-row.ts";
import type { TimeRange } from "../values/time-range.ts";
import { roundedMs, timeText, viewAs } from "../values/api-form.ts";
import { exportUsage } from "./usage-export.ts";
import { repriceOperation } from "./reprice.ts";
import { statementOperation } from "./statement.ts";
import { readDimensions, usageFilter } from "./usage-filter.ts";

const stepMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;
const maxSteps = 1500;
const reading = { method: "GET", resource: "Usage", ...permissions.read } as const;

export function usageOperations(services: AdminServices): readonly Operation[] {
  return [
    totals(services),
    series(services),
    listCalls(services),
    exportUsage(services),
    getCall(services),
    repriceOperation(services),
    statementOperation(services),
  ];
}

function totals({ reports, costs, clock, platform, store }: AdminServices): Operation {
  return defineOperation({
    ...reading,
    id: "getUsageTotals",
    path: "/admin/v1/usage/totals",
    summary: "Sum up usage",
    query: totalsQuerySchema,
    answer: totalsSchema,
    async run({ call, query }) {
      const { filter: asked, isEmpty } = usageFilter(query, call.principal, clock.now());
      const by = readDimensions(query.by, call.principal);
      const filter = await keptOf(asked, by, costs);
      const hasRest = query.rest === "true";
      const found = isEmpty
        ? []
        : await reports.totals({ filter, by, limit: query.limit, hasRest });
      if (found.length === 0) requireKnownNames(platform(), query);
      const namesOf = await readGroupNames(store, found);
      const data = found.map((total) => viewTotal(total, namesOf(total)));
      return { ...rangeOf(filter), data };
    },
  });
}

function series({ reports, costs, clock, platform, store }: AdminServices): Operation {
  return defineOperation({
    ...reading,
    id: "getUsageSeries",
    path: "/admin/v1/usage/series",
    summary: "Sum up usage by minute, hour or day",
    query: seriesQuerySchema,
    answer: seriesSchema,
    async run({ call, query }) {
      const { filter: asked, isEmpty } = usageFilter(query, call.principal, clock.now());
      const by = readDimensions(query.by, call.principal);
      const filter = await keptOf(asked, by, costs);
      const step = query.step ?? defaultStep(filter);
      checkSteps(filter, step);
      const { limit, rank, rest } = query;
      const wanted = { filter, by, step, limit, rank, hasRest: rest === "true" };
      const found = isEmpty ? [] : await reports.series(wanted);
      if (found.length === 0) requireKnownNames(platform(), query);
      const namesOf = await readGroupNames(store, found);
      const data = found.map((point) => {
        return { at: timeText(point.at), ...viewTotal(point, namesOf(point)) };
      });
      return { ...rangeOf(filter), step, data };
    },
  });
}

/** A report that only calls can make begins with the oldest that is kept. */
async function keptOf(
  filter: CallFilter,
  by: readonly GroupDimension[],
  costs: AdminServices["costs"],
): Promise<CallFilter> {
  if (!needsCalls(filter, by)) return filter;
  const since = Math.max(filter.since, await costs.callsSince());
  return { ...filter, since: Math.min(since, filter.until) };
}

function defaultStep({ since, until }: TimeRange): UsageStep {
  if (until - since <= 6 * stepMs.hour) return "minute";
  return until - since <= 14 * stepMs.day ? "hour" : "day";
}

function checkSteps({ since, until }: TimeRange, step: UsageStep): void {
  if ((until - since) / stepMs[step] <= maxSteps) return;
  throw invalidField("step", `the period has more than ${maxSteps} steps; use longer steps`);
}

function listCalls({ reports, clock, platform }: AdminServices): Operation {
  return defineOperation({
    ...reading,
    id: "listCalls",
    path: "/admin/v1/usage/calls",
    summary: "List calls, newest first",
    query: callQuerySchema,
    answer: listOf(callRowSchema),
    async run({ call, query }) {
      const { filter, isEmpty } = usageFilter(query, call.principal, clock.now());
      if (isEmpty) return emptyList;
      const page = await reports.calls(filter, pageRequest(query));
      if (page.items.length === 0) requireKnownNames(platform(), query);
      return listAnswer(page, (record) => viewCall(record, call.principal));
    },
  });
}

function getCall({ reports, prices }: AdminServices): Operation {
  return defineOperation({
    ...reading,
    id: "getCall",
    path: "/admin/v1/usage/calls/{id}",
    summary: "Show a call",
    answer: callDetailSchema,
    async run({ call, parameters }) {
      const record = await reports.call(parameters["id"] ?? "");
      return viewCallDetail(requireVisible(record, call.principal, "call"), call.principal, prices);
    },
  });
}

type GroupNames = UsageTotalView["names"];

/** Reads the names of all groups at once; the answer picks those of one. */
async function readGroupNames(
  store: Pick<AdminServices["store"], "names">,
  totals: readonly UsageTotal[],
): Promise<(total: UsageTotal) => GroupNames> {
  const known = new Map<NamedDimension, ReadonlyMap<string, string>>();
  for (const dimension of namedDimensions) {
    const ids = new Set(totals.flatMap(({ group }) => group[dimension] ?? []).map(String));
    if (ids.size > 0) known.set(dimension, await store.names(dimension, [...ids]));
  }
  return ({ group }) =>
    Object.fromEntries(
      [...known].map(([dimension, names]) => {
        return [dimension, names.get(String(group[dimension])) ?? null];
      }),
    );
}

export function viewTotal(total: UsageTotal, names: GroupNames = {}): UsageTotalView {
  return viewAs(usageTotalSchema, total, {
    group: { ...total.group },
    names,
    cost_usd: total.costNano === undefined ? null : usdOfNano(total.costNano),
    duration_ms: viewPercentiles(total.duration),
    first_event_ms: viewPercentiles(total.firstEvent),
  });
}

function viewPercentiles(percentiles: Percentiles | undefined): Percentiles | null {
  if (percentiles === undefined) return null;
  const { p50, p95, p99 } = percentiles;
  return { p50: roundedMs(p50), p95: roundedMs(p95), p99: roundedMs(p99) };
}

function rangeOf({ since, until }: TimeRange): { since: string; until: string } {
  return { since: timeText(since), until: timeText(until) };
}
