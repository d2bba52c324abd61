import { configurationSchema } from "../contract/configuration.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { timeText } from "../values/api-form.ts";

/** The settings of the process that answers, and whether others have the same file. */
export function configurationOperations(services: AdminServices): readonly Operation[] {
  const { configuration, processRows } = services;
  return [
    defineOperation({
      id: "getConfiguration",
      method: "GET",
      path: "/admin/v1/configuration",
      resource: "Platform",
      summary: "Show the configuration in force",
      description:
        "All settings of the process that answers, with where each value comes from. Change them in the " +
        "file, or in the environment and the command line of the gateway.",
      ...permissions.oversee,
      answer: configurationSchema,
      async run({ call }) {
        requireUnbound(call.principal);
        const { path, loadedAt, settings } = configuration();
        const rows = await processRows();
        return {
          path: path ?? null,
          loaded_at: timeText(loadedAt),
          data: settings.map(({ line, takesEffect, isPending, variables, ...setting }) => ({
            ...setting,
            line: line ?? null,
            variables: [...variables],
            takes_effect: takesEffect,
            is_pending: isPending,
          })),
          processes: rows.map(({ id, name, number, configDigest, configuredAt }) => ({
            id,
            name,
            number,
            config_digest: configDigest ?? null,
            configured_at: timeText(configuredAt),
          })),
        };
      },
    }),
  ];
}
