import type {
  ChatCompletion,
  ChatCompletionChunk,
  CreateEmbeddingResponse,
} from "openai/resources";

/** Bodies as the official client types them; the tests' assertions do the checking. */
export async function chatOf(response: Response): Promise<ChatCompletion> {
  return (await response.json()) as ChatCompletion;
}

export async function embeddingsOf(response: Response): Promise<CreateEmbeddingResponse> {
  return (await response.json()) as CreateEmbeddingResponse;
}

export interface ErrorBody {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

export async function errorOf(response: Response): Promise<ErrorBody["error"]> {
  return ((await response.json()) as ErrorBody).error;
}

/** A frame of a stream: a parsed chunk, a comment, or the closing `[DONE]`. */
export interface StreamText {
  readonly chunks: readonly (ChatCompletionChunk & Partial<ErrorBody>)[];
  readonly comments: readonly string[];
  readonly isDone: boolean;
}

export async function streamOf(response: Response): Promise<StreamText> {
  return parseStream(await response.text());
}

export function parseStream(text: string): StreamText {
  const chunks: (ChatCompletionChunk & Partial<ErrorBody>)[] = [];
  const comments: string[] = [];
  let isDone = false;
  for (const line of text.split("\n")) {
    if (line.startsWith(":")) comments.push(line);
    if (!line.startsWith("data: ")) continue;
    const data = line.slice(6);
    if (data === "[DONE]") isDone = true;
    else chunks.push(JSON.parse(data) as ChatCompletionChunk);
  }
  return { chunks, comments, isDone };
}
