import type { Clock } from "../domain/clock.ts";
import type { UpstreamAdapter } from "./adapter.ts";
import { createOpenAiAdapter } from "./openai/adapter.ts";
import type { OpenAiSettings } from "./openai/settings.ts";

/** One line a kind: what the configuration names is made here and nowhere else. */
const kinds = {
  openai: (settings: OpenAiSettings, clock: Clock) => createOpenAiAdapter(settings, clock),
};

export type AdapterSettings = { readonly kind: "openai" } & OpenAiSettings;

export function createAdapter(settings: AdapterSettings, clock: Clock): UpstreamAdapter {
  return kinds[settings.kind](settings, clock);
}
