import type { JsonObject } from "../../domain/json-object.ts";
import { type Converted, convertLiteLlm } from "./convert-litellm.ts";
import { stated } from "./convert-target.ts";
import { Entry } from "./entry.ts";
import { Notes } from "./notes.ts";

/** LiteLLM's names of the providers that TensorZero calls otherwise. */
const providers: ReadonlyMap<string, string> = new Map(
  Object.entries({
    aws_bedrock: "bedrock",
    aws_sagemaker: "sagemaker",
    fireworks: "fireworks_ai",
    gcp_vertex_anthropic: "vertex_ai",
    gcp_vertex_gemini: "vertex_ai",
    google_ai_studio_gemini: "gemini",
    sglang: "hosted_vllm",
    tgi: "hosted_vllm",
    together: "together_ai",
    vllm: "hosted_vllm",
  }),
);

/**
 * Converts a parsed configuration of TensorZero: its models as deployments of LiteLLM, whose `order` is
 * TensorZero's `routing`.
 */
export function convertTensorZero(tree: JsonObject): Converted {
  const file = new Entry(tree);
  const notes = new Notes();
  const tell = (entry: Entry, name: string): void => {
    for (const key of entry.unread()) notes.add(`${key} is not carried over`, name);
  };
  const list: JsonObject[] = [];
  const aliases: Record<string, string> = {};
  for (const [section, mode, prefix] of [
    ["models", "chat", "model_name"],
    ["embedding_models", "embedding", "embedding_model_name"],
  ] as const) {
    const models = file.map(section);
    for (const name of models.keys) {
      const model = models.map(name);
      const named = model.map("providers");
      const usual = timesOf(model);
      for (const [order, each] of model.list("routing").map(String).entries()) {
        const provider = named.map(each);
        const params = {
          ...paramsOf(provider, notes, name),
          ...usual,
          ...timesOf(provider),
          order,
        };
        list.push({ model_name: name, litellm_params: params, model_info: { mode } });
        tell(provider, `${section}.${name}.providers.${each}`);
      }
      tell(model, `${section}.${name}`);
      aliases[`tensorzero::${prefix}::${name}`] = name;
    }
  }
  const functions = "write its prompt into the requests, and name the model of its variant";
  for (const name of file.map("functions").keys) {
    notes.add(`Functions stay behind; ${functions}`, name);
  }
  for (const key of file.unread()) notes.add(`${key} is not carried over`);
  const converted = convertLiteLlm({
    model_list: list,
    router_settings: { model_group_alias: aliases },
  });
  return { ...converted, notes: [...notes.sentences(), ...converted.notes] };
}

function paramsOf(provider: Entry, notes: Notes, name: string): JsonObject {
  const type = provider.text("type") ?? "";
  const model = ["model_name", "model_id", "deployment_id"].flatMap(
    (key) => provider.text(key) ?? [],
  );
  const region = provider.text("region");
  const key = provider.text("api_key_location");
  const [, variable] = /^env::(\w+)$/.exec(key ?? "") ?? [];
  if (key?.startsWith("dynamic::") === true) {
    notes.add(
      "Keys that callers bring (dynamic::) are not taken; the file has the provider's",
      name,
    );
  }
  return stated({
    model: `${providers.get(type) ?? type}/${model[0] ?? "tgi"}`,
    api_base: provider.text("api_base") ?? provider.text("endpoint"),
    api_key: variable === undefined ? undefined : `os.environ/${variable}`,
    aws_region_name: region === "sdk" ? "os.environ/AWS_REGION" : region,
  });
}

/** In seconds. */
function timesOf(entry: Entry): JsonObject {
  const times = entry.map("timeouts");
  const whole = times.map("non_streaming").number("total_ms");
  const first = times.map("streaming").number("ttft_ms");
  return stated({ timeout: whole && whole / 1000, stream_timeout: first && first / 1000 });
}
