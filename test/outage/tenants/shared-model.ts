import { upstreamAt } from "../grid/cell-models.ts";

/** The alias that all tenants call. */
export const sharedModel = "shared";
export const tenantCount = 20;

export interface SharedModel {
  /** One upstream for each. */
  readonly ports: readonly number[];
  readonly timeouts: string;
}

/** The sections `upstreams` and `models`: one model with a target at each port. */
export function sharedSections({ ports, timeouts }: SharedModel): Record<string, string> {
  const names = ports.map((_, index) => `upstream-${index}`);
  const upstreams = ports.map(
    (port, index) => `\n  ${names[index]}: ${upstreamAt({ wire: "openai", port, timeouts })}`,
  );
  const targets = names.map((upstream) => `{ upstream: ${upstream}, model: double }`);
  const facts = "kind: chat, context_window: 200000, max_output_tokens: 64000";
  return {
    upstreams: upstreams.join(""),
    models: `\n  ${sharedModel}: { ${facts}, targets: [${targets.join(", ")}] }`,
  };
}

/** Each tenant's account. */
export function tenantAccounts(isOneAccount: boolean): readonly string[] {
  return Array.from({ length: tenantCount }, (_, index) =>
    isOneAccount ? "all" : `tenant-${index}`,
  );
}
