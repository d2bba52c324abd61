import { z } from "zod";
import { usdSchema } from "./usage.ts";

const nameSchema = z.string().min(1).max(256).describe("As callers send it, or as calls have it.");

export const endUserNamesSchema = z
  .strictObject({ names: z.array(nameSchema).min(1).max(100) })
  .meta({ id: "EndUserNames", examples: [{ names: ["jane@example.com"] }] });

export const endUserSchema = z
  .object({
    name: z.string(),
    end_user: z.string().describe("As calls have it."),
    calls: z.int(),
    input_tokens: z.int(),
    output_tokens: z.int(),
    cost_usd: usdSchema
      .nullable()
      .describe("Cost of the calls that have one. Null: there are only others."),
  })
  .meta({ id: "EndUser", description: "What an end user has used in the calls that are kept." });
export type EndUserView = z.infer<typeof endUserSchema>;

export const endUsersSchema = z.object({ data: z.array(endUserSchema) }).meta({ id: "EndUsers" });

export const endUserErasureSchema = z
  .strictObject({ name: nameSchema })
  .meta({ id: "EndUserErasure", examples: [{ name: "jane@example.com" }] });

export const erasedEndUserSchema = z
  .object({ erased: z.literal(true), calls: z.int().describe("Calls that it was taken out of.") })
  .meta({ id: "ErasedEndUser" });
