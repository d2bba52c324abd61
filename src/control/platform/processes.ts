import { isLive, type ProcessRow } from "../../domain/process-row.ts";
import { processDifferences } from "../../domain/process-differences.ts";
import { processesSchema, type ProcessRowView } from "../contract/processes.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { type Operation, permissions } from "../operation/operation.ts";
import { requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { apiForm } from "../values/api-form.ts";

/** The gateway processes on the database. */
export function processOperations({ processRows }: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      id: "listProcesses",
      method: "GET",
      path: "/admin/v1/processes",
      resource: "Platform",
      summary: "List the gateway processes on the database",
      description:
        "Each process writes its row every second. One that ended in order is not listed; one that is " +
        "silent is listed until `auth.snapshot_max_age` is over.",
      ...permissions.observe,
      answer: processesSchema,
      async run({ call }) {
        requireUnbound(call.principal);
        const found = await processRows();
        const differences = processDifferences(found).map(({ text }) => text);
        const warnings = [...differences, ...found.flatMap(lackOf)];
        return { data: found.map(viewProcess), config_differs: differs(found), warnings };
      },
    }),
  ];
}

function viewProcess({ notReady, degraded, ...row }: ProcessRow): ProcessRowView {
  return {
    ...apiForm(row),
    live: isLive(row),
    ready: notReady === undefined,
    not_ready: notReady ?? null,
    degraded: degraded ?? null,
  };
}

function lackOf(row: ProcessRow): readonly string[] {
  const { name, number, degraded } = row;
  return degraded === undefined || !isLive(row)
    ? []
    : [`process ${number} of ${name} is degraded: ${degraded}.`];
}

function differs(processes: readonly ProcessRow[]): boolean {
  const digests = processes.filter(isLive).flatMap(({ configDigest = [] }) => configDigest);
  return new Set(digests).size > 1;
}
