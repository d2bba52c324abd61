import { bedrockUpstream, startGateway } from "../../support/gateway.ts";
import { Capture } from "./capture.ts";
import type { PeerRequest } from "./requests.ts";

/** What became of a request: what was sent to the provider for it, or why nothing was. */
export type Recorded =
  | { readonly path: string; readonly body: unknown }
  | { readonly refused: { readonly status: number; readonly message: string } };

/** What Sluice sends for each request, by name: a real gateway and the bytes on its wire. */
export async function recordSluice(
  requests: readonly PeerRequest[],
): Promise<Readonly<Record<string, Recorded>>> {
  await using capture = new Capture();
  const models = [...new Set(requests.map(({ model }) => model))];
  await using gateway = await startGateway({
    sections: {
      upstreams: `{ provider: ${bedrockUpstream(capture.url)} }`,
      models: `{ ${models.map(modelSection).join(", ")} }`,
    },
  });
  const recorded: Record<string, Recorded> = {};
  for (const { name, model, body } of requests) {
    const alias = aliasOf(model);
    const response = await gateway.post("/v1/chat/completions", { model: alias, ...body });
    const text = await response.text();
    const [first, ...more] = capture.take();
    if (more.length > 0) throw new Error(`${name} was sent ${more.length + 1} times`);
    recorded[name] = first ?? { refused: { status: response.status, message: messageIn(text) } };
  }
  return recorded;
}

function modelSection(model: string): string {
  const target = `{ upstream: provider, model: "${model}" }`;
  return (
    `${aliasOf(model)}: { kind: chat, context_window: 128000, max_output_tokens: 4096, ` +
    `targets: [${target}] }`
  );
}

function aliasOf(model: string): string {
  return model.replaceAll(/[^a-z0-9]+/g, "-");
}

function messageIn(text: string): string {
  const body: { error?: { message?: string } } = JSON.parse(text);
  return body.error?.message ?? text;
}
