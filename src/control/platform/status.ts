import type { ProcessStatus } from "../../domain/process-status.ts";
import { processSchema, statusSchema, type ProcessView } from "../contract/processes.ts";
import { defineOperation } from "../operation/define-operation.ts";
import { type Operation, permissions } from "../operation/operation.ts";
import { requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { viewAs } from "../values/api-form.ts";

/** The processes of the machine that answers. */
export function statusOperations({ processes, clock }: AdminServices): readonly Operation[] {
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
  ];
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
