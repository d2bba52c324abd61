import type { ImportedFamily, ModelFamily } from "../models/model-families.ts";
import { llamaPrompt, mistralPrompt, qwenPrompt, type PromptTemplate } from "./prompt-template.ts";

/** How one family of imported models is called through InvokeModel. */
export interface ImportedWire {
  readonly prompt: PromptTemplate;
  /** The field of the cap; its name also determines the form of the answer. */
  readonly capField: "max_gen_len" | "max_tokens";
}

const importedWires: Readonly<Record<ImportedFamily, ImportedWire>> = {
  "imported-llama": { prompt: llamaPrompt, capField: "max_gen_len" },
  "imported-mistral": { prompt: mistralPrompt, capField: "max_tokens" },
  "imported-qwen": { prompt: qwenPrompt, capField: "max_gen_len" },
};

/** Undefined for families that Converse, or an embedding's InvokeModel, serves. */
export function importedWireOf(family: ModelFamily): ImportedWire | undefined {
  const wires: Readonly<Partial<Record<ModelFamily, ImportedWire>>> = importedWires;
  return wires[family];
}
