package mapnet

import "encoding/json"

// The person at this hub, as agents know them.
const (
	Human = "human"
	// System is the hub itself, as the source of what nobody did.
	System = "system"
)

// Raw is JSON that is handed on as it came.
type Raw = json.RawMessage

// Meta is what a frame may carry besides what the protocol knows.
type Meta map[string]any

// Agent is an agent as others see it. Times are Unix milliseconds.
type Agent struct {
	ID                   string         `json:"id"`
	Name                 string         `json:"name,omitempty"`
	Description          string         `json:"description,omitempty"`
	State                string         `json:"state"`
	Parent               string         `json:"parent,omitempty"`
	Relationships        []Relationship `json:"relationships,omitempty"`
	Role                 string         `json:"role,omitempty"`
	Scopes               []string       `json:"scopes,omitempty"`
	Visibility           string         `json:"visibility,omitempty"`
	Lifecycle            *Lifecycle     `json:"lifecycle,omitempty"`
	Capabilities         Capabilities   `json:"capabilities,omitempty"`
	CapabilityDescriptor Raw            `json:"capabilityDescriptor,omitempty"`
	Environment          Raw            `json:"environment,omitempty"`
	Metadata             map[string]Raw `json:"metadata,omitempty"`
	Meta                 Meta           `json:"_meta,omitempty"`
}

// Relationship is what an agent says it is to another one.
type Relationship struct {
	Type     string `json:"type"`
	AgentID  string `json:"agentId"`
	Metadata Raw    `json:"metadata,omitempty"`
}

// Lifecycle is when an agent came and went.
type Lifecycle struct {
	CreatedAt    int64  `json:"createdAt,omitempty"`
	StartedAt    int64  `json:"startedAt,omitempty"`
	StoppedAt    int64  `json:"stoppedAt,omitempty"`
	LastActiveAt int64  `json:"lastActiveAt,omitempty"`
	ExitCode     *int   `json:"exitCode,omitempty"`
	ExitReason   string `json:"exitReason,omitempty"`
}

// Message is what one participant tells others.
type Message struct {
	ID        string `json:"id"`
	From      string `json:"from"`
	To        Raw    `json:"to"`
	Timestamp int64  `json:"timestamp"`
	Payload   Raw    `json:"payload,omitempty"`
	Meta      Raw    `json:"meta,omitempty"`
}

// MessageMeta is what the hub understands of a message's meta; the rest is handed on.
type MessageMeta struct {
	Timestamp       int64     `json:"timestamp"`
	Relationship    string    `json:"relationship"`
	ExpectsResponse bool      `json:"expectsResponse"`
	CorrelationID   string    `json:"correlationId"`
	IsResult        bool      `json:"isResult"`
	Priority        string    `json:"priority"`
	Delivery        string    `json:"delivery"`
	TTL             int64     `json:"ttlMs"`
	Mail            *MailMeta `json:"mail"`
}

// MailMeta is the conversation that a message belongs to.
type MailMeta struct {
	ConversationID string      `json:"conversationId"`
	ThreadID       string      `json:"threadId,omitempty"`
	InReplyTo      string      `json:"inReplyTo,omitempty"`
	Visibility     *Visibility `json:"visibility,omitempty"`
}

// Scope is a named group of agents.
type Scope struct {
	ID                string         `json:"id"`
	Name              string         `json:"name,omitempty"`
	Description       string         `json:"description,omitempty"`
	Parent            string         `json:"parent,omitempty"`
	JoinPolicy        string         `json:"joinPolicy,omitempty"`
	AutoJoinRoles     []string       `json:"autoJoinRoles,omitempty"`
	Visibility        string         `json:"visibility,omitempty"`
	MessageVisibility string         `json:"messageVisibility,omitempty"`
	SendPolicy        string         `json:"sendPolicy,omitempty"`
	Persistent        bool           `json:"persistent"`
	AutoDelete        bool           `json:"autoDelete"`
	Metadata          map[string]Raw `json:"metadata,omitempty"`
}

// Event is something that happened. Data is fixed as it happens.
type Event struct {
	ID        string   `json:"id"`
	Type      string   `json:"type"`
	Timestamp int64    `json:"timestamp"`
	Source    string   `json:"source,omitempty"`
	Data      Raw      `json:"data,omitempty"`
	CausedBy  []string `json:"causedBy,omitempty"`
}

// Conversation is turns of several participants about one thing.
type Conversation struct {
	ID                   string `json:"id"`
	Type                 string `json:"type"`
	Status               string `json:"status"`
	Subject              string `json:"subject,omitempty"`
	ParticipantCount     int    `json:"participantCount"`
	ParentConversationID string `json:"parentConversationId,omitempty"`
	ParentTurnID         string `json:"parentTurnId,omitempty"`
	CreatedAt            int64  `json:"createdAt"`
	UpdatedAt            int64  `json:"updatedAt"`
	ClosedAt             int64  `json:"closedAt,omitempty"`
	CreatedBy            string `json:"createdBy"`
	Metadata             Raw    `json:"metadata,omitempty"`
}

// Member is somebody in a conversation.
type Member struct {
	ID          string      `json:"id"`
	Type        string      `json:"type"`
	Role        string      `json:"role"`
	JoinedAt    int64       `json:"joinedAt"`
	LeftAt      int64       `json:"leftAt,omitempty"`
	Permissions Permissions `json:"permissions"`
	AgentInfo   *AgentInfo  `json:"agentInfo,omitempty"`
}

// AgentInfo is the agent behind a member.
type AgentInfo struct {
	AgentID string `json:"agentId"`
	Name    string `json:"name,omitempty"`
	Role    string `json:"role,omitempty"`
}

// Permissions is what a member may do in its conversation.
type Permissions struct {
	CanSend          bool   `json:"canSend"`
	CanObserve       bool   `json:"canObserve"`
	CanInvite        bool   `json:"canInvite"`
	CanRemove        bool   `json:"canRemove"`
	CanCreateThreads bool   `json:"canCreateThreads"`
	HistoryAccess    string `json:"historyAccess"` // none, from-join, full
	CanSeeInternal   bool   `json:"canSeeInternal"`
}

// Visibility is who may read a turn.
type Visibility struct {
	Type  string   `json:"type"`            // all, participants, role, private
	IDs   []string `json:"ids,omitempty"`   // of participants
	Roles []string `json:"roles,omitempty"` // of role
}

// Turn is one thing that was said.
type Turn struct {
	ID             string      `json:"id"`
	ConversationID string      `json:"conversationId"`
	Participant    string      `json:"participant"`
	Timestamp      int64       `json:"timestamp"`
	ContentType    string      `json:"contentType"`
	Content        Raw         `json:"content"`
	ThreadID       string      `json:"threadId,omitempty"`
	InReplyTo      string      `json:"inReplyTo,omitempty"`
	Source         Source      `json:"source"`
	Visibility     *Visibility `json:"visibility,omitempty"`
	Status         string      `json:"status,omitempty"`
	Metadata       Raw         `json:"metadata,omitempty"`
}

// Source is how a turn came to be.
type Source struct {
	Type      string `json:"type"` // explicit, intercepted
	Method    string `json:"method,omitempty"`
	MessageID string `json:"messageId,omitempty"`
}

// Thread is turns that follow one turn.
type Thread struct {
	ID               string `json:"id"`
	ConversationID   string `json:"conversationId"`
	RootTurnID       string `json:"rootTurnId"`
	ParentThreadID   string `json:"parentThreadId,omitempty"`
	Subject          string `json:"subject,omitempty"`
	TurnCount        int    `json:"turnCount"`
	ParticipantCount int    `json:"participantCount"`
	CreatedAt        int64  `json:"createdAt"`
	UpdatedAt        int64  `json:"updatedAt"`
	CreatedBy        string `json:"createdBy"`
}
