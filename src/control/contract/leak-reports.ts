import { z } from "zod";

/** What secret scanners send and get, in the format of GitHub's partner program. */

export const reportedLeaksSchema = z
  .array(
    z.object({
      token: z.string().min(1).max(1_000).describe("What was found."),
      type: z.string().max(200).describe("The partner's type, returned as `token_type`."),
      url: z.string().max(4_000).nullish().describe("Where it was found."),
      source: z
        .string()
        .max(200)
        .nullish()
        .describe("Where in the source it was found, such as `content`."),
    }),
  )
  .min(1)
  .max(1_000)
  .meta({ id: "ReportedLeaks" });
export type ReportedLeak = z.infer<typeof reportedLeaksSchema>[number];

export const leakLabelsSchema = z
  .array(
    z.object({
      token_raw: z.string(),
      token_type: z.string(),
      label: z
        .enum(["true_positive", "false_positive"])
        .describe("`true_positive`: it is or was an API key or management token of this gateway."),
    }),
  )
  .meta({ id: "LeakLabels", description: "In the order of the report." });

/** A report sent by an operator. All bodies of the admin API are objects. */
export const handedReportSchema = z
  .strictObject({ leaks: reportedLeaksSchema })
  .meta({ id: "HandedLeakReport" });
export const labelledReportSchema = z
  .object({ data: leakLabelsSchema })
  .meta({ id: "LabelledLeakReport" });
export type LabelledReport = z.infer<typeof labelledReportSchema>;
export type LeakLabel = z.infer<typeof leakLabelsSchema>[number];
