import type { Key, KeySecret } from "../../domain/keys/key.ts";
import { keyLiveSchema, type KeyUseView, targetsSchema } from "../contract/live.ts";
import { lastUseOf, requireKey } from "../keys/key-view.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { requireUnbound } from "../operation/scope.ts";
import { isLive } from "../platform/process-differences.ts";
import type { ProcessRow } from "../../store/process-row.ts";
import type { AdminServices, LiveReader } from "../services.ts";
import { viewTotal } from "../usage/usage.ts";
import { timeText } from "../values/api-form.ts";
import { viewGates, viewKeys, viewProcesses, viewTargets } from "./live-view.ts";

const hourMs = 3_600_000;
const mostTargets = 1_000;

/** What is known at this moment of targets and of keys, and what targets did lately. */
export function liveOperations(services: AdminServices): readonly Operation[] {
  return [listTargets(services), getKeyLive(services)];
}

function listTargets(services: AdminServices): Operation {
  const { live, platform, reports, processRows, clock } = services;
  return defineOperation({
    id: "listTargets",
    method: "GET",
    path: "/admin/v1/targets",
    resource: "Live",
    summary: "Show the state of all targets",
    description:
      "States, gates and processes are those of the machine that answers. Calls and times are of all " +
      "machines, from the ledger.",
    ...permissions.oversee,
    answer: targetsSchema,
    async run({ call }) {
      requireUnbound(call.principal);
      const now = clock.now();
      // Whole hours, so that only sums are read.
      const since = Math.floor(now / hourMs - 1) * hourMs;
      const filter = { since, until: now };
      const [facts, totals, rows] = await Promise.all([
        live.facts({ publicIds: [], accountIds: [] }),
        reports.totals({ filter, by: ["target"], limit: mostTargets }),
        processRows(),
      ]);
      const byTarget = new Map(totals.map((total) => [total.group["target"], total]));
      const targets = viewTargets(platform(), facts);
      const all = targets.reduce((sum, { id }) => sum + (byTarget.get(id)?.calls ?? 0), 0);
      const data = targets.map((target) => {
        const total = byTarget.get(target.id);
        const {
          calls = 0,
          failed_calls: incomplete = 0,
          abandoned_calls: abandoned = 0,
          first_event_ms = null,
        } = total ? viewTotal(total) : {};
        const share = calls / Math.max(1, all);
        return { ...target, calls, failed_calls: incomplete - abandoned, share, first_event_ms };
      });
      return {
        ...machinesAmong(live, rows),
        since: timeText(since),
        data,
        gates: viewGates(facts),
        processes: viewProcesses(facts),
      };
    },
  });
}

function getKeyLive(services: AdminServices): Operation {
  return defineOperation({
    id: "getKeyLive",
    method: "GET",
    path: "/admin/v1/keys/{id}/live",
    resource: "Live",
    summary: "Show what a key uses of its limits now",
    description:
      "The limits are those that all processes share. Open calls are those of the machine that answers.",
    ...permissions.read,
    answer: keyLiveSchema,
    async run({ call, parameters }) {
      const { principal } = call;
      const named = parameters["id"] ?? "";
      const key = await services.store.read((view) => requireKey(view, named, principal));
      return readKeyLive(key, services);
    },
  });
}

async function readKeyLive(key: Pick<Key, "id">, services: AdminServices) {
  const { store, live, clock } = services;
  const secrets = await store.read((view) => view.secrets.ofKey(key.id));
  const now = clock.now();
  const facts = await live.facts({ publicIds: workingIds(secrets, now), accountIds: [] });
  const [use] = await viewKeys(live, facts, now);
  return viewKeyLive({ use, secrets }, services);
}

/** Public ids of the secrets that are accepted. */
export function workingIds(secrets: readonly KeySecret[], now: number): readonly string[] {
  const working = secrets.filter(({ expiresAt = Infinity }) => expiresAt > now);
  return working.map(({ publicId }) => publicId);
}

export function viewKeyLive(
  {
    use,
    secrets,
  }: { readonly use: KeyUseView | undefined; readonly secrets: readonly KeySecret[] },
  services: Pick<AdminServices, "live" | "lastUse">,
) {
  return {
    machine: services.live.machine,
    use: use ?? null,
    secrets: secrets.map((secret) => ({
      public_id: secret.publicId,
      last_used_at: timeText(lastUseOf(secret, services)),
    })),
  };
}

/** The machine that answers, and others on the database, about which it knows nothing. */
export function machinesAmong({ machine }: LiveReader, rows: readonly ProcessRow[]) {
  const others = rows.filter((row) => isLive(row) && row.name !== machine).map(({ name }) => name);
  return { machine, other_machines: [...new Set(others)] };
}
