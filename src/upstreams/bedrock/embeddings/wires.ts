import type { EmbeddingFamily } from "../models/model-families.ts";
import { cohereV3, cohereV4 } from "./cohere.ts";
import { nova } from "./nova.ts";
import { titanImage, titanTextV1, titanTextV2 } from "./titan.ts";
import type { EmbeddingWire } from "./wire.ts";

export const embeddingWires: Readonly<Record<EmbeddingFamily, EmbeddingWire>> = {
  "titan-embed-v1": titanTextV1,
  "titan-embed-v2": titanTextV2,
  "titan-embed-image": titanImage,
  "nova-embed": nova,
  "cohere-embed-v3": cohereV3,
  "cohere-embed-v4": cohereV4,
};
