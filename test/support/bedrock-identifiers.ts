import type { ChatFamily } from "../../src/upstreams/bedrock/models/facts.ts";

/** An identifier of each that the provider calls. */
export const identifiers: Readonly<Record<ChatFamily, string>> = {
  "claude-3": "anthropic.claude-3-haiku-20240307-v1:0",
  "claude-3-5": "anthropic.claude-3-5-sonnet-20241022-v2:0",
  "claude-3-5-haiku": "anthropic.claude-3-5-haiku-20241022-v1:0",
  "claude-4": "us.anthropic.claude-sonnet-4-20250514-v1:0",
  "claude-opus-4": "us.anthropic.claude-opus-4-20250514-v1:0",
  "claude-4-5": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
  "claude-4-6": "us.anthropic.claude-sonnet-4-6",
  "claude-4-7": "global.anthropic.claude-opus-4-7",
  "claude-5": "global.anthropic.claude-opus-5",
  "claude-haiku-5-5": "global.anthropic.claude-haiku-5-5",
  "claude-sonnet-5-5": "global.anthropic.claude-sonnet-5-5",
  "claude-opus-5-5": "global.anthropic.claude-opus-5-5",
  "llama-3": "meta.llama3-70b-instruct-v1:0",
  "llama-3-1": "us.meta.llama3-1-70b-instruct-v1:0",
  "llama-3-2-vision": "us.meta.llama3-2-90b-instruct-v1:0",
  "llama-4": "us.meta.llama4-scout-17b-instruct-v1:0",
  "mistral-7b": "mistral.mistral-7b-instruct-v0:2",
  "mixtral-8x7b": "mistral.mixtral-8x7b-instruct-v0:1",
  "mistral-large": "mistral.mistral-large-2402-v1:0",
  nova: "us.amazon.nova-pro-v1:0",
  "nova-micro": "us.amazon.nova-micro-v1:0",
  "nova-2": "us.amazon.nova-2-lite-v1:0",
  "titan-text": "amazon.titan-text-premier-v1:0",
  "cohere-command-r": "cohere.command-r-plus-v1:0",
  "deepseek-r1": "us.deepseek.r1-v1:0",
  "gpt-oss": "openai.gpt-oss-120b-1:0",
  "gpt-5-6": "us.openai.gpt-6-sol",
  "other-chat": "qwen.qwen3-32b-v1:0",
};

export const converseFamilies = Object.keys(identifiers).filter(
  (name): name is ChatFamily => name in identifiers,
);
