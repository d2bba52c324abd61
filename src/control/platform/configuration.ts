import { configurationSchema } from "../contract/configuration.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { requireUnbound } from "../operation/scope.ts";
import type { AdminServices } from "../services.ts";
import { apiForm, timeText } from "../values/api-form.ts";

/** The settings of the process that answers, and whether others have the same file. */
export function configurationOperation({ configuration, processRows }: AdminServices): Operation {
  return defineOperation({
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
      const data = settings.map((setting) => ({ ...apiForm(setting), value: setting.value }));
      const processes = (await processRows()).map((row) => apiForm(row));
      return { path: path ?? null, loaded_at: timeText(loadedAt), data, processes };
    },
  });
}
