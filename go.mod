module deskbell

go 1.26

require (
	github.com/BurntSushi/toml v1.6.0
	github.com/godbus/dbus/v5 v5.2.4
	github.com/rivo/uniseg v0.4.7
)

require golang.org/x/sys v0.27.0 // indirect
