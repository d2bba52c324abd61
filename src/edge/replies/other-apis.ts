/** An API that clients may ask for and that is not served, with what to do instead. */
interface OtherApi {
  /** Matches a path without `/v1`. */
  readonly path: RegExp;
  readonly advice: string;
}

const chatInstead = "use POST /v1/chat/completions instead";

const otherApis: readonly OtherApi[] = [
  {
    path: /^\/responses(\/|$)/,
    advice:
      `The Responses API is not served; ${chatInstead}. In OpenAI's SDKs that is ` +
      "`client.chat.completions.create`; other clients have a setting for the API they use.",
  },
  {
    path: /^\/messages(\/|$)/,
    advice:
      "Anthropic's Messages API is not served; use an OpenAI client with POST /v1/chat/completions.",
  },
  {
    path: /^\/completions$/,
    advice: `The old completions API is not served; ${chatInstead}, with the prompt as a user message.`,
  },
  {
    path: /^\/openai\/deployments\//,
    advice:
      "Azure's paths are not served; use the plain OpenAI client with a base URL that ends in /v1, " +
      "and the name of the deployment as 'model'.",
  },
  {
    path: /^\/api\/(chat|generate|embed|embeddings|tags)$/,
    advice: "Ollama's API is not served; use an OpenAI client with a base URL that ends in /v1.",
  },
  {
    path: /^\/v1beta\//,
    advice: `Gemini's API is not served; ${chatInstead}, with an OpenAI client.`,
  },
  {
    path: /^\/(assistants|audio|batches|containers|conversations|evals|files|fine_tuning|images|moderations|realtime|threads|uploads|vector_stores|videos)(\/|$)/,
    advice: "Only chat completions, embeddings and the list of models are served here.",
  },
  {
    path: /^\/chat$/,
    advice: "The base URL must end in /v1: clients add /chat/completions themselves.",
  },
];

/** What to do instead, for a path of another API. */
export function otherApiAdvice(path: string): string | undefined {
  const plain = path.replace(/^\/v1(?=\/)/, "").replace(/(?<=.)\/$/, "");
  return otherApis.find((api) => api.path.test(plain))?.advice;
}
