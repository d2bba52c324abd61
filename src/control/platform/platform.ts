import { platformSchema } from "../contract/platform.ts";
import { defineOperation } from "../operation/define-operation.ts";
import type { Operation } from "../operation/operation.ts";
import { permissions } from "../operation/permissions.ts";
import type { AdminServices } from "../services.ts";
import { apiForm } from "../values/api-form.ts";

/** The parts of the configuration that keys use. */
export function platformOperations({ platform }: AdminServices): readonly Operation[] {
  return [
    defineOperation({
      id: "getPlatform",
      method: "GET",
      path: "/admin/v1/platform",
      resource: "Platform",
      summary: "Show environments, models and plans",
      ...permissions.read,
      answer: platformSchema,
      run() {
        const { environments, plans } = platform();
        return {
          environments: apiForm(environments),
          plans: [...plans.values()].map(({ name, limits, provisioned }) => ({
            name,
            requests_per_minute: limits?.requestsPerMinute ?? null,
            tokens_per_minute: limits?.tokensPerMinute ?? null,
            provisioned,
          })),
        };
      },
    }),
  ];
}
