import { z } from "zod";
import type { Destination } from "../stand/stand.ts";
import { chatPath, type LoadRequest } from "./requests.ts";

const bodySchema = z.looseObject({});

/** The request as this gateway takes it: many have a path, or a name of the model, of their own. */
export function requestFor({ changes }: Destination, request: LoadRequest): LoadRequest {
  if (changes === undefined) return request;
  const { chatPath: ownPath = chatPath, body: fields } = changes;
  const body = { ...bodySchema.parse(JSON.parse(request.body)), ...fields };
  const kept = Object.entries(body).filter(([, value]) => value !== null);
  return {
    path: request.path === chatPath ? ownPath : request.path,
    body: JSON.stringify(Object.fromEntries(kept)),
  };
}
