import { z } from "zod";
import { readDocument } from "../support/documents.ts";

const source = z.strictObject({
  type: z.literal("prometheus"),
  uid: z.literal("$" + "{datasource}"),
});
const place = z.strictObject({ h: z.number(), w: z.number(), x: z.number(), y: z.number() });
const targetSchema = z.looseObject({ expr: z.string(), legendFormat: z.string() });
const panelSchema = z.looseObject({ id: z.number(), title: z.string(), gridPos: place });
const dashboardSchema = z.looseObject({
  panels: z.array(
    z.discriminatedUnion("type", [
      panelSchema.extend({ type: z.literal("row") }),
      panelSchema.extend({
        type: z.enum(["stat", "state-timeline", "timeseries"]),
        datasource: source,
        targets: z.array(targetSchema).min(1),
      }),
    ]),
  ),
  templating: z.object({
    list: z.array(
      z.looseObject({ name: z.string(), type: z.string(), definition: z.string().optional() }),
    ),
  }),
  annotations: z.object({
    list: z.array(
      z.looseObject({
        name: z.string(),
        datasource: source,
        expr: z.string(),
        titleFormat: z.string(),
      }),
    ),
  }),
});

export const dashboard = dashboardSchema.parse(
  JSON.parse(readDocument("deploy/grafana/sluice.json")),
);

/** All queries: `expr` as Grafana has it, `expression` as Prometheus gets it. */
export const queries = [
  ...dashboard.panels.flatMap((panel) => {
    const { title } = panel;
    return panel.type === "row" ? [] : panel.targets.map((target) => ({ ...target, title }));
  }),
  ...dashboard.annotations.list.map(({ name, expr, titleFormat }) => ({
    title: name,
    expr,
    legendFormat: titleFormat,
  })),
].map(({ title, expr, legendFormat }) => ({
  title,
  expr,
  expression: withValues(expr),
  legendFormat,
}));

/** An expression with values in place of Grafana's variables. */
export function withValues(text: string): string {
  return text
    .replaceAll("$__rate_interval", "5m")
    .replaceAll("$job", "sluice")
    .replaceAll("$instance", ".*");
}
