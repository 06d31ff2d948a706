module deskbell

go 1.26
