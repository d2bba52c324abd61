import type { ProcessStatus } from "../../domain/process-status.ts";
import { processSchema, statusSchema, type ProcessView } from "../contract/status.ts";
import { defineOperation } from "../operation/define-operation.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import { requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { viewAs } from "../values/api-form.ts";

/** The processes of the gateway that answers. */
export function statusOperations({ processes, clock }: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      id: "getStatus",
      method: "GET",
      path: "/admin/v1/status",
      resource: "Platform",
      summary: "Show the processes of the gateway",
      ...permissions.observe,
      answer: statusSchema,
      run({ call }) {
        requireUnbound(call.principal);
        const now = clock.now();
        return { data: processes().map((process) => viewProcess(process, now)) };
      },
    }),
  ];
}

function viewProcess({ role, number, notReady, facts }: ProcessStatus, now: number): ProcessView {
  return viewAs(
    processSchema,
    { ...facts },
    {
      process: role,
      number: number ?? null,
      ready: notReady === undefined,
      not_ready: notReady ?? null,
      age_ms: facts === undefined ? null : Math.max(0, now - facts.startedAt),
    },
  );
}
