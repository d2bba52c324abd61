import { z } from "zod";
import { isTimeZone } from "../../domain/money/calendar.ts";

export const timeZoneSchema = z
  .string()
  .max(100)
  .refine(isTimeZone, "use an IANA name such as `Europe/Berlin` or `UTC`")
  .meta({ examples: ["Europe/Berlin"] });
