import type { AdapterServices, UpstreamAdapter } from "./adapter.ts";
import { createBedrockAdapter } from "./bedrock/adapter.ts";
import type { BedrockSettings } from "./bedrock/settings.ts";
import { createOpenAiAdapter } from "./openai/adapter.ts";
import type { OpenAiSettings } from "./openai/settings.ts";

export type AdapterSettings =
  ({ readonly kind: "openai" } & OpenAiSettings) | ({ readonly kind: "bedrock" } & BedrockSettings);

/** One line a kind: what the configuration names is made here and nowhere else. */
export function createAdapter(
  settings: AdapterSettings,
  services: AdapterServices,
): UpstreamAdapter {
  switch (settings.kind) {
    case "openai":
      return createOpenAiAdapter(settings, services);
    case "bedrock":
      return createBedrockAdapter(settings, services);
  }
}
