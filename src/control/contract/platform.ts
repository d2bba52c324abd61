import { z } from "zod";

export const platformSchema = z
  .object({
    environments: z.array(
      z.object({
        name: z.string(),
        hosts: z.array(z.string()),
        models: z.array(z.object({ alias: z.string(), kind: z.enum(["chat", "embedding"]) })),
      }),
    ),
    plans: z.array(
      z.object({
        name: z.string(),
        requests_per_minute: z.int().nullable().describe("Null: each key brings its own."),
        tokens_per_minute: z.int().nullable(),
        provisioned: z.boolean().describe("Whether keys on it may have provisioned throughput."),
      }),
    ),
  })
  .meta({ id: "Platform", description: "What the configuration has, as of now." });
