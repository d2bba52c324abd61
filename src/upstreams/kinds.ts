import { anthropicKind } from "./anthropic/kind.ts";
import { bedrockKind } from "./bedrock/kind.ts";
import type { UpstreamKind } from "./kind.ts";
import { openaiKind } from "./openai/kind.ts";

/** One line for each kind. */
export const upstreamKinds: readonly UpstreamKind[] = [openaiKind, anthropicKind, bedrockKind];
