import { sellableUnits } from "../../domain/limits/capacity.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { LiveFacts } from "../../domain/live-facts.ts";
import type { Principal } from "../../domain/principal.ts";
import type { ProcessRow } from "../../store/process-row.ts";
import type { UsagePoint } from "../../store/usage-reports.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import {
  badKinds,
  type KeyUseView,
  needKinds,
  type NeedView,
  overviewSchema,
} from "../contract/live.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import {
  isLive,
  nameOf,
  processDifferences,
  silencesAmong,
  withDistinctNames,
} from "../platform/process-differences.ts";
import { passesByItself } from "../platform/process-status.ts";
import { differs } from "../platform/processes.ts";
import type { AdminServices, Platform } from "../services.ts";
import { viewTotal } from "../usage/usage.ts";
import { timeText } from "../values/api-form.ts";
import { readAccountNames } from "../values/read-once.ts";
import { machinesAmong } from "./live-operations.ts";
import { viewKeys, viewTargets } from "./live-view.ts";

const hourMs = 3_600_000;
const soonMs = 7 * 24 * hourMs;
const mostOfAKind = 50;
const mostKeys = 20;
const mostBudgets = 500;
const nearLimitPercent = 90;
const nearlyFullShare = 0.8;

/** `at`: when it ends or happened, in milliseconds since the epoch. */
type Subject = Omit<NeedView["subject"], "type"> & { readonly at?: number };

function need(kind: NeedView["kind"], { id, name, at }: Subject, what: string): NeedView {
  const [type = ""] = kind.split("_");
  const severity = badKinds.some((bad) => bad === kind) ? "bad" : "warn";
  return { kind, severity, subject: { type, id, name }, what, at: timeText(at) };
}

/** What needs somebody now, and the figures of the first page, in one answer. */
export function overviewOperation(services: AdminServices): Operation {
  const { store, live, reports, processRows, platform, clock } = services;
  return defineOperation({
    id: "getOverview",
    method: "GET",
    path: "/admin/v1/overview",
    resource: "Live",
    summary: "Show what needs you now",
    description:
      "Users of an account see only what is of it. Open calls, targets and spools are of the " +
      "machine that answers; limits, keys and sums of all machines.",
    ...permissions.read,
    answer: overviewSchema,
    async run({ call: { principal } }) {
      const { accountId } = principal;
      const isOfAll = accountId === undefined;
      const now = clock.now();
      const since = Math.floor(now / hourMs - 24) * hourMs;
      const filter = { since, until: now, accountId };
      const [facts, rows, totals, points, ofBudgets, ofKeys, sold] = await Promise.all([
        live.facts({ publicIds: [], accountIds: [accountId] }),
        isOfAll ? processRows() : [],
        reports.totals({ filter, by: [], limit: 1 }),
        reports.series({ filter, by: [], step: "hour", limit: 1 }),
        store.read((view) => needsOfBudgets(view, principal, now)),
        store.read((view) => needsOfKeys(view, principal, now)),
        isOfAll ? store.read((view) => view.keys.soldUnits({ now })) : new Map<string, number>(),
      ]);
      // Without them, the rest is still worth knowing.
      const keys = await viewKeys(live, facts, now).catch(() => []);
      const ofGateway = [
        ...needsOfProcesses(withDistinctNames(rows)),
        ...needsOfTargets(platform(), facts),
        ...needsOfSpools(facts),
        ...needsOfPools(platform(), sold),
      ];
      const open = facts.flatMap((each) =>
        isOfAll ? each.openCalls : each.keys.map(({ openCalls }) => openCalls),
      );
      const [sums] = totals.map((total) => viewTotal(total));
      return {
        ...machinesAmong(live, rows),
        checked_at: timeText(now),
        needs: worstFirst([
          ...(isOfAll ? ofGateway : []),
          ...ofBudgets,
          ...needsOfLimits(keys),
          ...ofKeys,
        ]),
        keys: keys.slice(0, mostKeys),
        open_calls: open.reduce((sum, count) => sum + count, 0),
        since: timeText(since),
        sums: sums ?? null,
        hours: eachHour(since, now, points),
      };
    },
  });
}

function eachHour(since: number, now: number, points: readonly UsagePoint[]) {
  const byHour = new Map(points.map((point) => [point.at, point]));
  const hours = Array.from({ length: Math.ceil((now - since) / hourMs) }, (_, index) => {
    return since + index * hourMs;
  });
  return hours.map((at) => {
    const { calls = 0, failedCalls = 0, abandonedCalls = 0 } = byHour.get(at) ?? {};
    return { at: timeText(at), calls, failed_calls: failedCalls, abandoned_calls: abandonedCalls };
  });
}

function worstFirst(needs: readonly NeedView[]): NeedView[] {
  const byKind = Map.groupBy(needs, ({ kind }) => kind);
  return needKinds.flatMap((kind) => byKind.get(kind)?.slice(0, mostOfAKind) ?? []);
}

function needsOfProcesses(rows: readonly ProcessRow[]): readonly NeedView[] {
  const silences = silencesAmong(rows).map(({ row, text }) => ({ row, what: `It ${text}` }));
  const live = rows.filter(isLive);
  const lacks = live.map((row) => ({ row, what: row.notReady }));
  const subjectOf = (row: ProcessRow): Subject => ({ id: row.id, name: nameOf(row) });
  const notReady = [...lacks, ...silences].flatMap(({ row, what }) => {
    return what === undefined ? [] : need("process_not_ready", subjectOf(row), what);
  });
  const degraded = live.flatMap((row) => {
    if (row.degraded === undefined || row.degraded.includes(passesByItself)) return [];
    const what = `It is degraded: ${row.degraded}. \`sluice doctor\` tells why.`;
    return need("process_degraded", subjectOf(row), what);
  });
  const differences = processDifferences(rows).map(({ text }) => text);
  if (differs(rows)) differences.push("Live processes have loaded different configurations.");
  const subject = { id: "", name: "configuration" };
  const differing = differences.map((what) => need("configuration_differs", subject, what));
  return [...notReady, ...degraded, ...differing];
}

function needsOfTargets(platform: Platform, facts: readonly LiveFacts[]): readonly NeedView[] {
  return viewTargets(platform, facts).flatMap(({ id, state, why, out_until: until }) => {
    if (state === "in_service") return [];
    const subject = { id, name: id, ...(until !== null && { at: Date.parse(until) }) };
    return need(`target_${state}`, subject, why ?? state);
  });
}

function needsOfSpools(facts: readonly LiveFacts[]): readonly NeedView[] {
  return facts.flatMap(({ process, spoolBytes, spoolLimitBytes }) => {
    if (spoolBytes <= spoolLimitBytes * nearlyFullShare) return [];
    const what =
      `Its spool is ${Math.round((100 * spoolBytes) / spoolLimitBytes)} % full; once it is, calls are ` +
      "refused. Does the database take rows, and is ledger.spool_limit large enough?";
    return need("process_spool_filling", { id: String(process), name: `process ${process}` }, what);
  });
}

function needsOfPools({ pools }: Platform, sold: ReadonlyMap<string, number>): readonly NeedView[] {
  return [...sold].flatMap(([name, units]) => {
    const pool = pools.get(name);
    const sellable = pool === undefined ? 0 : sellableUnits(pool);
    const what = `${units} units are sold, but only ${sellable} fit. Enlarge it, or sell less.`;
    return units <= sellable ? [] : need("pool_oversold", { id: name, name }, what);
  });
}

function needsOfLimits(keys: readonly KeyUseView[]): readonly NeedView[] {
  const near = keys.filter(({ used_percent: used }) => used > nearLimitPercent);
  return near.map((key) => {
    const { key_id: id, application: name, plan, used_percent: used, requests, tokens } = key;
    const isOfRequests = requests.used / requests.limit >= tokens.used / tokens.limit;
    const { limit, set_by: by } = isOfRequests ? requests : tokens;
    const whose = { plan: `plan ${plan}`, key: "the key itself", account: "its account" }[by];
    const what = `It uses ${used} % of the ${limit} ${isOfRequests ? "requests" : "tokens"} a minute of ${whose}.`;
    return need("key_near_limit", { id, name }, what);
  });
}

/** What is spent for the most part, the newest budgets of all. */
async function needsOfBudgets(
  view: ControlView,
  { accountId }: Principal,
  now: number,
): Promise<readonly NeedView[]> {
  const nameOf = readAccountNames(view);
  const { items } = await view.budgets.list({ accountId }, { limit: mostBudgets });
  const needs: NeedView[] = [];
  for (const { budget, spentNano } of await view.budgets.states(items, now)) {
    const { id, keyId, applicationId, limitNano, mode, setBy } = budget;
    if (spentNano <= limitNano * nearlyFullShare) continue;
    const of = keyId ?? applicationId ?? `account ${await nameOf(budget.accountId)}`;
    const percent = Math.floor((100 * spentNano) / limitNano);
    const then = mode === "refuse" ? "Calls beyond it are refused." : "It only warns.";
    const who = setBy === "operator" ? "an operator" : "the account holder";
    // At least cents.
    const limit = usdOfNano(limitNano).replace(/0{1,7}$/, "");
    const spent =
      percent >= 100
        ? `All of ${limit} USD is spent, ${percent} %.`
        : `${percent} % of ${limit} USD is spent.`;
    const what = `${spent} ${then} Set by ${who}.`;
    needs.push(need("budget_near_limit", { id, name: of }, what));
  }
  return needs;
}

/** What ends soon, and what leaked and was not replaced. */
async function needsOfKeys(
  { due, audit, keys, secrets }: ControlView,
  { accountId, userId, role }: Principal,
  now: number,
): Promise<readonly NeedView[]> {
  const soon = { now, before: now + soonMs, limit: mostOfAKind, accountId };
  const needs = [
    ...(await due.keysDue(soon)).map((key) =>
      need("key_expires", key, "It expires. Move its expiry if it is still needed."),
    ),
    ...(await due.tokensDue(soon, role === "operator" ? undefined : userId)).map((token) =>
      need("token_expires", token, "It expires. Create another one in time."),
    ),
    ...(await due.rotationsDue(soon)).map((key) => {
      const used = key.lastUsedAt === null ? "never" : `at ${timeText(key.lastUsedAt)}`;
      const what = `Its previous secret still works, last used ${used}. Replace it, then end it.`;
      return need("key_rotating", key, what);
    }),
  ];
  const found = { action: "key.leak", accountId, since: now - soonMs };
  for (const { subject, at } of (await audit.list(found, { limit: mostOfAKind })).items) {
    const key = await keys.get(subject.id);
    if (key === undefined || key.revokedAt !== undefined) continue;
    const all = await secrets.ofKey(key.id);
    if (all.some(({ createdAt }) => createdAt > at)) continue;
    const leaked = { id: key.id, name: key.application, at };
    needs.push(need("key_leaked", leaked, "A secret leaked and was ended. Rotate the key."));
  }
  return needs;
}
