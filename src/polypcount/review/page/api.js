// Every request to the server.

// Each start of the review has an address of its own, so an old page cannot go on.
const NOT_OURS = "The review was started anew. Please open the address that it printed then; what was saved is there.";

/** The server answered, but not with what was asked for. `body` may hold the newest state (status 409); from 500 on, it has a fault. */
export class Refused extends Error {
  constructor(status, body) {
    const detail = body?.detail;
    super(typeof detail === "string" ? detail : status === 401 ? NOT_OURS : `The server answered with status ${status}.`);
    this.status = status;
    this.body = body;
  }
}

/** No answer came: the server has stopped, or is not able to answer now. */
export class NoAnswer extends Error {
  constructor() {
    super("The server does not answer.");
  }
}

const PATIENCE_MS = 30000;

async function request(path, { method = "GET", body = null, signal = null } = {}) {
  const patience = AbortSignal.timeout(PATIENCE_MS);
  let response;
  try {
    response = await fetch(path, {
      method,
      credentials: "same-origin",
      cache: "no-store",
      headers: body === null ? {} : { "Content-Type": "application/json" },
      body: body === null ? null : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, patience]) : patience,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new NoAnswer();
  }
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    if (response.ok) throw new NoAnswer();
  }
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

const at = (id, rest = "") => `/api/procedures/${encodeURIComponent(id)}${rest}`;

export const listProcedures = () => request("/api/procedures");
export const startCount = (id) => request(at(id, "/count"), { method: "POST", body: {} });
export const stopCount = (id) => request(at(id, "/count"), { method: "DELETE" });

export const loadState = (id) => request(at(id));
export const loadVersion = (id) => request(at(id, "/version"));
export const sendDecision = (id, { version, count_id }, author, decision) =>
  request(at(id, "/decisions"), { method: "POST", body: { version, count_id, author, decision } });
export const previewRegroup = (id) => request(at(id, "/regroup"));
export const exportCorrected = (id, { version, count_id }, author, formats) =>
  request(at(id, "/export"), { method: "POST", body: { version, count_id, author, formats } });

/** What looks like a tracklet, or like the whole polyp that it belongs to: {similar, reason}. */
export const loadSimilar = (id, item, wholePolyp, signal) =>
  request(at(id, `/similar/${encodeURIComponent(item)}${wholePolyp ? "?polyp=true" : ""}`), { signal });
export const loadBoxes = async (id, start, stop) => (await request(at(id, `/boxes?start=${start}&stop=${stop}`))).boxes;

// A browser keeps pictures, so their addresses say of which count they are.
export const pictureAddress = ({ id, state }, item, k) => at(id, `/pictures/${encodeURIComponent(item)}/${k}.jpg?of=${state.count_id}`);
export const frameAddress = ({ id, state }, index, width) => at(id, `/frames/${index}.jpg?width=${width}&of=${state.count_id}`);

/** One frame as a blob. Throws `Refused` where the recording has no such frame. */
export async function loadFrame(store, index, width, signal) {
  const response = await fetch(frameAddress(store, index, width), { credentials: "same-origin", signal });
  if (!response.ok) throw new Refused(response.status, await response.json().catch(() => null));
  return response.blob();
}
