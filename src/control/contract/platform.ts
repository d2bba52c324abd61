import { z } from "zod";

const planSchema = z
  .object({
    name: z.string(),
    requests_per_minute: z.int().nullable().describe("Null: each key has its own."),
    tokens_per_minute: z.int().nullable(),
    provisioned: z.boolean().describe("Whether its keys may have provisioned throughput."),
  })
  .meta({ id: "Plan", description: "A named set of limits." });
export type PlanView = z.infer<typeof planSchema>;

export const platformSchema = z
  .object({
    environments: z.array(
      z.object({
        name: z.string(),
        hosts: z.array(z.string()),
        models: z.array(z.object({ alias: z.string(), kind: z.enum(["chat", "embedding"]) })),
      }),
    ),
    plans: z.array(planSchema),
  })
  .meta({ id: "Platform", description: "The current configuration." });

export const plansSchema = z.object({ data: z.array(planSchema) });

export const environmentsSchema = z.object({
  data: z.array(
    z
      .object({
        name: z.string(),
        hosts: z.array(z.string()).describe("Host names that callers use; `*`: any other."),
        models: z.array(z.string()).describe("Aliases."),
      })
      .meta({
        id: "Environment",
        description: "A deployment stage with its own hosts and models.",
      }),
  ),
});

export const modelQuerySchema = z.strictObject({ environment: z.string().max(100).optional() });

export const modelSchema = z
  .object({
    alias: z.string(),
    kind: z.enum(["chat", "embedding"]),
    environment: z.string(),
    context_window: z.int().describe("Maximum tokens of input and output together."),
    max_output_tokens: z.int().nullable().describe("Null for embeddings."),
    targets: z
      .array(z.string())
      .nullable()
      .describe(
        "`upstream/model`, in the order in which they are tried. Null except for operators.",
      ),
    fallbacks: z.array(z.string()).describe("Models that are tried if its targets fail."),
  })
  .meta({ id: "Model", description: "A model that callers can use in an environment." });

export const modelsSchema = z.object({ data: z.array(modelSchema) });
