import { bedrockUpstream } from "../../support/gateway.ts";
import type { CallKind } from "../load/load-plan.ts";
import type { Cell, Wire } from "./cells.ts";

/** Shortened, so that a minute shows their effect. Everything else has its default. */
export const gridTimeouts = "{ connect: 300ms, first_byte: 750ms, idle: 500ms }";

/** The control: calls without faults, beside the cells of the same wire and kind. */
export interface Control {
  readonly model: string;
  readonly wire: Wire;
  readonly kind: CallKind;
}

/** A cell with its names in the configuration. */
export interface PlacedCell {
  readonly cell: Cell;
  readonly model: string;
  /** The upstream that fails. */
  readonly primary: string;
  readonly control: Control;
}

/** Upstreams are identified by their places in the list of doubles. */
export interface GridModels {
  readonly cells: readonly PlacedCell[];
  readonly controls: readonly Control[];
  /** Names of the upstreams, in the order of the doubles. */
  readonly upstreams: readonly string[];
  /** The sections `upstreams` and `models` of the configuration. */
  sections(ports: readonly number[], timeouts: string): Readonly<Record<string, string>>;
}

export function placeCells(cells: readonly Cell[]): GridModels {
  const upstreams: { readonly name: string; readonly wire: Wire }[] = [];
  const models: string[] = [];
  const controls = new Map<string, Control>();
  const addUpstream = (name: string, wire: Wire): string => {
    upstreams.push({ name, wire });
    return name;
  };
  const placed = cells.map((cell, index): PlacedCell => {
    const { left, wire, kind } = cell;
    const model = `cell-${index}`;
    const primary = addUpstream(`${model}-primary`, wire);
    const targets = [target(cell, primary, 1)];
    if (left !== "fallback") {
      const second = addUpstream(`${model}-second`, wire);
      targets.push(target(cell, second, left === "equal" ? 1 : 2));
    }
    const hasFallback = left === "fallback" || left === "both";
    const fallback = `${model}-fallback`;
    models.push(modelOf(model, kind, targets, hasFallback ? `fallbacks: [${fallback}]` : ""));
    if (hasFallback) {
      models.push(modelOf(fallback, kind, [target(cell, addUpstream(fallback, wire), 1)]));
    }
    const name = `control-${wire}-${kind}`;
    const control = controls.get(name) ?? { model: name, wire, kind };
    controls.set(name, control);
    return { cell, model, primary, control };
  });
  for (const control of controls.values()) {
    const upstream = addUpstream(control.model, control.wire);
    models.push(modelOf(control.model, control.kind, [target(control, upstream, 1)]));
  }
  return {
    cells: placed,
    controls: [...controls.values()],
    upstreams: upstreams.map(({ name }) => name),
    sections: (ports, timeouts) => ({
      upstreams: upstreams
        .map(({ name, wire }, index) => {
          const place = { wire, port: ports[index] ?? 0, timeouts };
          return `\n  ${name}: ${upstreamAt(place)}`;
        })
        .join(""),
      models: models.join(""),
    }),
  };
}

interface UpstreamPlace {
  readonly wire: Wire;
  readonly port: number;
  readonly timeouts: string;
}

/** A double as an upstream of the configuration. */
export function upstreamAt({ wire, port, timeouts }: UpstreamPlace): string {
  const origin = `http://127.0.0.1:${port}`;
  switch (wire) {
    case "openai":
      return `{ kind: openai, base_url: "${origin}/v1", timeouts: ${timeouts} }`;
    case "bedrock":
      return bedrockUpstream(origin, `timeouts: ${timeouts}`);
  }
}

function target(
  { wire, kind }: Pick<Cell, "wire" | "kind">,
  upstream: string,
  priority: number,
): string {
  const family = kind === "embeddings" ? "titan-embed-v2" : "claude-4";
  const facts = wire === "bedrock" ? `, bedrock: { family: ${family} }` : "";
  return `{ upstream: ${upstream}, model: double, priority: ${priority}${facts} }`;
}

function modelOf(name: string, kind: CallKind, targets: readonly string[], more = ""): string {
  const facts =
    kind === "embeddings"
      ? "kind: embedding, context_window: 8192"
      : "kind: chat, context_window: 200000, max_output_tokens: 64000";
  const fields = [facts, `targets: [${targets.join(", ")}]`, more].filter((field) => field !== "");
  return `\n  ${name}: { ${fields.join(", ")} }`;
}
