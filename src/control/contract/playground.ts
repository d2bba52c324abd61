import { z } from "zod";
import { idSchema } from "./values.ts";

export const playgroundQuerySchema = z.strictObject({
  key_id: idSchema.describe("The key that calls; not one of its secrets."),
});
