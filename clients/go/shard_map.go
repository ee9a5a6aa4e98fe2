package postbote

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
)

const (
	// A server has at most this many shards.
	shardsMax = 256
	// A stream has at most this many lanes, each with a connection: more workers than that share them.
	lanesMax = 64
	// A stream remembers the slots of this many bots, in 2 MiB or so.
	slotsMax = 1 << 16
	// noHint is in place of a shard in a place for pairs of all shards.
	noHint = -1
)

// slotOf returns the slot of a bot, the first 12 bits of SHA-256 of its id in decimal digits. Its shard is the slot
// modulo the number of shards.
func slotOf(botID int64) int {
	var digits [20]byte
	sum := sha256.Sum256(strconv.AppendInt(digits[:0], botID, 10))
	return int(sum[0])<<4 | int(sum[1])>>4
}

// lanePlace is where the requests of a lane are sent.
type lanePlace struct {
	node *connection
	// hint is a shard: the node gives the request to the worker that has it.
	hint int
}

// shardMap says for each shard where its pairs are sent. It does not change.
type shardMap struct {
	shards int
	places [shardsMax]lanePlace
}

// place returns where the pairs of a bot are sent.
func (m *shardMap) place(botID int64, slots slotMemory) lanePlace {
	if m.shards == 1 {
		return m.places[0]
	}
	return m.places[slots.slotOf(botID)%m.shards]
}

// slotMemory remembers the slots of bots, because to compute one takes a tenth of the time of a push.
type slotMemory map[int64]int

func (s slotMemory) slotOf(botID int64) int {
	slot, isKnown := s[botID]
	if !isKnown {
		if len(s) >= slotsMax {
			for each := range s {
				delete(s, each)
			}
		}
		slot = slotOf(botID)
		s[botID] = slot
	}
	return slot
}

// nodeShards is what a node says of its shards: a group for each of its workers.
type nodeShards struct {
	node   *connection
	shards int
	groups [][]int
}

// newShardMap returns the map of the nodes of a cluster. A shard that several of them claim, as happens during a move, is
// sent to the first one. A shard of no group is sent to the server, and so is everything if there is nothing to choose.
func newShardMap(server *connection, nodes []nodeShards) *shardMap {
	of, rest := &shardMap{shards: 1}, lanePlace{server, noHint}
	places := map[int]lanePlace{}
	var groups []lanePlace
	for _, each := range nodes {
		of.shards = each.shards
		for _, group := range each.groups {
			groups = addGroup(groups, each.node, group, places)
		}
	}
	if len(groups) == 0 || (len(groups) == 1 && groups[0].node == server) {
		of.shards, places = 1, nil
	} else if len(groups) >= lanesMax {
		rest = groups[0]
	}
	for shard := range of.places {
		of.places[shard] = rest
		if place, isKnown := places[shard]; isKnown {
			of.places[shard] = place
		}
	}
	return of
}

// addGroup gives the shards of a group that have no place yet a place of their own.
func addGroup(groups []lanePlace, node *connection, group []int, places map[int]lanePlace) []lanePlace {
	var own []int
	for _, shard := range group {
		if _, isTaken := places[shard]; !isTaken {
			own = append(own, shard)
		}
	}
	if len(own) == 0 {
		return groups
	}
	groups = append(groups, lanePlace{node, own[0]})
	for _, shard := range own {
		places[shard] = groups[(len(groups)-1)%lanesMax]
	}
	return groups
}

// shardsIn reads the response to GET /v1/shards. The last result is false if it is not one.
func shardsIn(text []byte) (shards int, groups [][]int, isUsable bool) {
	var of struct {
		Shards int `json:"shards"`
		// A null in place of a number or a list is not one.
		Groups  []*[]*int `json:"groups"`
		Version *int64    `json:"version"`
	}
	if json.Unmarshal(text, &of) != nil || of.Version == nil || of.Groups == nil || len(of.Groups) > shardsMax ||
		of.Shards < 1 || of.Shards > shardsMax || of.Shards&(of.Shards-1) != 0 {
		return 0, nil, false
	}
	var isSeen [shardsMax]bool
	for _, listed := range of.Groups {
		if listed == nil {
			return 0, nil, false
		}
		var group []int
		for _, shard := range *listed {
			if shard == nil || *shard < 0 || *shard >= of.Shards || isSeen[*shard] {
				return 0, nil, false
			}
			isSeen[*shard] = true
			group = append(group, *shard)
		}
		groups = append(groups, group)
	}
	return of.Shards, groups, true
}
