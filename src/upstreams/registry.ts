import type { AdapterServices, UpstreamAdapter } from "./adapter.ts";
import { createOpenAiAdapter } from "./openai/adapter.ts";
import type { OpenAiSettings } from "./openai/settings.ts";

/** One line a kind: what the configuration names is made here and nowhere else. */
const kinds = {
  openai: createOpenAiAdapter,
};

export type AdapterSettings = { readonly kind: "openai" } & OpenAiSettings;

export function createAdapter(
  settings: AdapterSettings,
  services: AdapterServices,
): UpstreamAdapter {
  return kinds[settings.kind](settings, services);
}
