import { z } from "zod";
import { timeSchema } from "./values.ts";

const settingSchema = z
  .object({
    key: z.string().meta({ examples: ["http.body_limit"] }),
    value: z
      .unknown()
      .describe(
        "With its unit. Secrets, and what may contain one, are `[redacted]`; free text from the " +
          "environment is shown as the file has it. Null for one that has no value until a restart.",
      ),
    source: z.enum(["default", "file", "environment", "command_line"]),
    line: z.int().nullable().describe("Line of the file; null for what it does not set."),
    variables: z.array(z.string()).describe("Variables of the environment that the file names."),
    about: z.string(),
    takes_effect: z
      .enum(["reload", "restart"])
      .describe("When a change of the file does: as soon as it is saved, or by a restart."),
    is_pending: z.boolean().describe("Whether the file has another value by now."),
  })
  .meta({ id: "Setting" });

export const configurationSchema = z
  .object({
    path: z.string().nullable().describe("The file; null for the built-in demo."),
    loaded_at: timeSchema,
    data: z.array(settingSchema).describe("Optional settings without a value are left out."),
    processes: z.array(
      z.object({
        id: z.string(),
        name: z.string(),
        number: z.int(),
        config_digest: z.string().nullable().describe("Equal for equal files; null for the demo."),
        configured_at: timeSchema,
      }),
    ),
  })
  .meta({ id: "Configuration", description: "The configuration in force." });
