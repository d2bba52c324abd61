import { z } from "zod";
import { userSchema } from "./access.ts";
import { accountSchema, applicationSchema } from "./accounts.ts";
import { keyQuerySchema, keySchema } from "./keys.ts";
import { environmentsSchema, modelsSchema, plansSchema, poolsSchema } from "./platform.ts";

const lists = {
  accounts: z.array(accountSchema),
  applications: z.array(applicationSchema),
  keys: z.array(keySchema),
  users: z.array(userSchema),
  environments: environmentsSchema.shape.data,
  models: modelsSchema.shape.data,
  plans: plansSchema.shape.data,
  pools: poolsSchema.shape.data,
};
export const choiceLists: readonly string[] = Object.keys(lists);
export const listedSchema = z.object({ data: z.array(z.unknown()) });

export const choicesQuerySchema = z.strictObject({
  of: z
    .string()
    .max(200)
    .describe(`Lists, separated by commas: ${choiceLists.join(", ")}.`),
  ...keyQuerySchema.pick({ account_id: true, application_id: true, status: true }).shape,
});

/** What is chosen from; at most the 500 newest of each. */
export const choicesSchema = z.object(lists).partial().meta({ id: "Choices" });
