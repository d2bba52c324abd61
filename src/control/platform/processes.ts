import type { ProcessRow } from "../../store/process-row.ts";
import {
  isLive,
  nameOf,
  processDifferences,
  silencesAmong,
  withDistinctNames,
} from "./process-differences.ts";
import {
  processesSchema,
  type ProcessRowView,
  processSchema,
  statusSchema,
  type ProcessView,
} from "../contract/processes.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { apiForm, viewAs } from "../values/api-form.ts";
import type { ProcessStatus } from "./process-status.ts";

/** The gateway processes of the machine that answers, and all on the database. */
export function processOperations(services: AdminServices): readonly Operation[] {
  const { processRows, processes, live, clock } = services;
  return [
    defineOperation({
      id: "getStatus",
      method: "GET",
      path: "/admin/v1/status",
      resource: "Platform",
      summary: "Show the gateway processes of the machine",
      ...permissions.observe,
      answer: statusSchema,
      async run({ call }) {
        requireUnbound(call.principal);
        const found = await processes();
        const now = clock.now();
        return { data: found.map((process) => viewProcess(process, now)) };
      },
    }),
    defineOperation({
      id: "listProcesses",
      method: "GET",
      path: "/admin/v1/processes",
      resource: "Platform",
      summary: "List the gateway processes on the database",
      description:
        "Each process writes its row every second. One that ended in order is not listed; one that is " +
        "silent is listed until `auth.snapshot_max_age` is over.",
      ...permissions.oversee,
      answer: processesSchema,
      async run({ call }) {
        requireUnbound(call.principal);
        const found = await processRows();
        const named = withDistinctNames(found);
        const differences = processDifferences(named).map(({ text }) => text);
        const silences = silencesAmong(named).map(
          ({ row, text }) => `${nameOf(row)} ${text} Look at \`sluice status\` on its machine.`,
        );
        const warnings = [...differences, ...named.flatMap(lackOf), ...silences];
        const data = found.map(viewRow);
        return { machine: live.machine, data, config_differs: differs(found), warnings };
      },
    }),
  ];
}

export function viewRow({ notReady, degraded, ...row }: ProcessRow): ProcessRowView {
  return {
    ...apiForm(row),
    live: isLive(row),
    ready: notReady === undefined,
    not_ready: notReady ?? null,
    degraded: degraded ?? null,
  };
}

function lackOf(row: ProcessRow): readonly string[] {
  const { degraded } = row;
  return degraded === undefined || !isLive(row) ? [] : [`${nameOf(row)} is degraded: ${degraded}.`];
}

export function differs(processes: readonly ProcessRow[]): boolean {
  const digests = processes.filter(isLive).flatMap(({ configDigest = [] }) => configDigest);
  return new Set(digests).size > 1;
}

function viewProcess({ number, leads, notReady, facts }: ProcessStatus, now: number): ProcessView {
  return viewAs(
    processSchema,
    { ...facts },
    {
      process: number,
      leads,
      ready: notReady === undefined,
      not_ready: notReady ?? null,
      age_ms: facts === undefined ? null : Math.max(0, now - facts.startedAt),
    },
  );
}
